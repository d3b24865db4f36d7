"""Scapy reads the bytes that we write, and builds bytes that we read."""

import pytest

pytest.importorskip("scapy", reason="the extra scapy is not installed")

from pathlib import Path

from scapy.layers.can import CAN
from scapy.packet import Raw
from scapy.utils import rdpcap

from bridges.media.can.codec import Reassembler, can_id, segment
from bridges.media.multicast.datagram import Decoder, Encoder
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import PUB, pack
from bus.wire.sp import HANDSHAKE
from capture.layers import (
    BuscouplerCapture,
    SpBus,
    SpMessage,
    TmqDatagram,
    TmqEnvelope,
    TmqFrame,
    transfers,
)
from capture.pcapng import Packet, Writer
from tests.bridges.support import ENVELOPE, FRAME, MESSAGE

LONG = pack(PUB, (7, 8), bytes(range(256)))


def test_a_frame_both_ways() -> None:
    read = TmqFrame(FRAME)
    assert (list(read.tokens), read.data, bytes(read)) == ([0x11223344, 0x55667788], b"hello", FRAME)
    assert bytes(TmqFrame(type="PUB", tokens=[7, 8], data=bytes(range(256)))) == LONG


def test_tokens_are_shown_in_hex() -> None:
    assert "tokens    = [0x00000007, 0x00000008]" in str(TmqFrame(LONG).show(dump=True))


def test_an_envelope_both_ways() -> None:
    read = TmqEnvelope(MESSAGE)
    assert (read.origin, read.sequence, read.hops, read[TmqFrame].data) == (0xA1B2C3D4, 7, 8, b"hello")
    built = TmqEnvelope(origin=0xA1B2C3D4, sequence=7) / TmqFrame(FRAME)
    assert bytes(built) == MESSAGE
    assert MESSAGE.startswith(ENVELOPE)


@pytest.mark.parametrize("content", [b"", b"hello", bytes(5000)])
def test_an_opaque_message_both_ways(content: bytes) -> None:
    wire = wrap(content, Envelope(0xA1B2C3D4, 7))
    read = TmqEnvelope(wire)
    assert (read.length, read.sequence, bytes(read.payload), bytes(read)) == (0, 7, content, wire)
    assert bytes(TmqEnvelope(origin=0xA1B2C3D4, sequence=7) / Raw(content)) == wire
    assert TmqFrame not in read


def test_sp_messages_in_a_stream() -> None:
    messages = [FRAME, MESSAGE, LONG, wrap(b"hello", Envelope(1, 2)), b"hello"]
    stream = HANDSHAKE + bytes(from_payloads(messages).data)
    read = SpBus(stream)
    assert read.handshake == HANDSHAKE
    assert [bytes(one.message) for one in read.messages] == messages
    assert bytes(SpMessage(message=TmqFrame(FRAME))) == bytes(from_payloads([FRAME]).data)


def test_a_datagram_both_ways() -> None:
    ((datagram, _),) = Encoder(1400, 1, 1).encode(from_payloads([FRAME, MESSAGE]))
    read = TmqDatagram(datagram)
    assert [bytes(one) for one in read.messages] == [FRAME, MESSAGE]
    built = bytes(TmqDatagram(messages=[TmqFrame(FRAME), TmqFrame(LONG)]))
    batch = Decoder().feed([(built, "peer")], 0.0)
    assert batch is not None
    assert payloads(batch) == [FRAME, LONG]


def test_can_transfers() -> None:
    frames = [
        CAN(flags="extended", identifier=can_id(0x1234, 42), length=len(data), data=data)
        for data in segment(LONG, 3)
    ]
    ((_, node, message),) = transfers(frames, Reassembler())
    assert (node, bytes(message)) == (42, LONG)


def test_a_capture_by_scapy_s_own_reader(tmp_path: Path) -> None:
    path, writer = tmp_path / "capture.pcapng", Writer()
    rows = [
        Packet(
            10**18 + 5, "gw", "bus plant", "bus plant", "peer", 0, 0, 0, 3, 0, 1, wrap(FRAME, Envelope(1, 2))
        ),
        Packet(10**18 + 9, "gw", "bus plant", "bus plant", "peer", 1, 1, 3, 3, 1, 12, b"queue full"),
    ]
    path.write_bytes(writer.head() + b"".join(map(writer.blocks, rows)))
    first, second = rdpcap(str(path))
    assert (first.peer, first[TmqEnvelope].origin, first[TmqFrame].data) == (b"peer", 1, b"hello")
    assert (second[BuscouplerCapture].messages, second.load) == (12, b"queue full")
