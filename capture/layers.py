"""Scapy layers for SP BUS, envelopes, TMQ frames, multicast datagrams, CAN transfers, and captures.

`from capture.layers import *`, then `rdpcap("capture.pcapng")[0][TmqFrame].tokens`, or `sniff(...)`.
Importing it binds captures to link type USER0. SP and multicast have no fixed port, so bind your own:
`bind_layers(TCP, SpBus, dport=5555)`, `bind_layers(UDP, TmqDatagram, dport=9943)`.
Needs scapy: pip install 'buscoupler[scapy]'.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from zlib import crc32

from scapy.config import conf
from scapy.fields import (
    BitField,
    ByteEnumField,
    ByteField,
    FieldLenField,
    FieldListField,
    FlagsField,
    IntField,
    LEIntField,
    LongField,
    PacketLenField,
    PacketListField,
    StrLenField,
    XByteField,
    XIntField,
)
from scapy.layers.can import CAN, CANFD
from scapy.packet import Packet, Raw

from bus.wire.envelope import LENGTH_MARK, MAGIC, OPAQUE, is_enveloped
from bus.wire.frame import FRAME_BYTES_MIN, is_frame
from bus.wire.pattern import hexadecimal
from bus.wire.sp import HANDSHAKE
from capture.pcapng import LINKTYPE_USER0

__all__ = ["BuscouplerCapture", "SpBus", "SpMessage", "TmqDatagram", "TmqEnvelope", "TmqFrame", "transfers"]

_TYPES = ["PUB", "SUB", "CACHE", "REMOVE", "0x10", "0x20", "BROKER", "BRIDGE"]
_CRC_BYTES = 4
_NODE_MAX = 127  # the low bits of an identifier are the source node (docs/wire/can.md)


class _Alone(Packet):
    """A layer without a payload: the bytes after it belong to the next."""

    def extract_padding(self, rest: bytes) -> tuple[bytes, bytes]:
        return b"", rest


class TokenField(IntField):
    """A token, in hex as everywhere."""

    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        return hexadecimal(x)


class TmqFrame(_Alone):
    """A TMQ frame (docs/wire/frame.md)."""

    name = "TMQ frame"
    fields_desc = [  # noqa: RUF012
        FlagsField("type", 1, 8, _TYPES),
        FieldLenField("count", None, fmt="B", count_of="tokens"),
        FieldLenField("size", None, fmt="H", length_of="data"),
        FieldListField("tokens", [], TokenField("", 0), count_from=lambda packet: packet.count),
        StrLenField("data", b"", length_from=lambda packet: packet.size),
    ]


class TmqEnvelope(Packet):
    """An envelope and its frame, or the opaque message in it as `Raw` (docs/wire/envelope.md)."""

    name = "TMQ envelope"
    fields_desc = [  # noqa: RUF012
        XByteField("magic", MAGIC),
        BitField("flags", 0, 4),
        BitField("hops", 8, 4),
        BitField("mark", 0xF, 4),
        BitField("length", None, 12),
        XIntField("origin", 0),
        IntField("sequence", 0),
    ]

    def post_build(self, head: bytes, payload: bytes) -> bytes:
        if self.length is None:
            length = LENGTH_MARK | len(payload) if is_frame(payload) else OPAQUE
            head = head[:2] + length.to_bytes(2, "big") + head[4:]
        return head + payload

    def extract_padding(self, rest: bytes) -> tuple[bytes, bytes]:
        size = self.length or len(rest)  # an opaque message ends where the transport says
        return rest[:size], rest[size:]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return TmqFrame if self.length else Raw


def message_class(data: bytes, **_: Any) -> Packet:
    """Parse one message at the start of `data`. The bytes after it are padding, unless it is opaque."""
    if is_enveloped(data):
        return TmqEnvelope(data)
    return TmqFrame(data) if len(data) >= FRAME_BYTES_MIN else Raw(data)


class SpMessage(_Alone):
    """A message with its length, as in an SP stream (docs/wire/sp.md)."""

    name = "SP message"
    fields_desc = [  # noqa: RUF012
        FieldLenField("length", None, fmt="Q", length_of="message"),
        PacketLenField("message", Raw(), message_class, length_from=lambda packet: packet.length),
    ]


def _sp_class(packet: Packet, known: list[Any], last: Packet | None, rest: bytes) -> type[Packet] | None:
    whole = len(rest) >= 8 and len(rest) >= 8 + int.from_bytes(rest[:8], "big")
    return SpMessage if whole else None


class SpBus(Packet):
    """A piece of an SP stream that begins with a handshake or a message, as scapy's TCPSession gives it."""

    name = "SP BUS"
    fields_desc = [  # noqa: RUF012
        StrLenField("handshake", b"", length_from=lambda p: 8 if p.original.startswith(HANDSHAKE) else 0),
        PacketListField("messages", [], next_cls_cb=_sp_class),
    ]


class TmqDatagram(Packet):
    """A multicast datagram (docs/wire/multicast.md). A fragment is an envelope and the bytes after it."""

    name = "TMQ multicast"
    fields_desc = [  # noqa: RUF012
        PacketListField("messages", [], message_class, length_from=lambda p: len(p.original) - _CRC_BYTES),
        LEIntField("crc", None),
    ]

    def post_build(self, head: bytes, payload: bytes) -> bytes:
        if self.crc is None:
            head = head[:-_CRC_BYTES] + crc32(head[:-_CRC_BYTES]).to_bytes(_CRC_BYTES, "little")
        return head + payload


class BuscouplerCapture(Packet):
    """The header of a packet in our pcapng captures (docs/capture.md)."""

    name = "Buscoupler capture"
    fields_desc = [  # noqa: RUF012
        ByteField("version", 1),
        ByteEnumField(
            "kind", 0, {0: "frame", 1: "ledger", 2: "gap", 4: "names", 5: "topology", 6: "event", 7: "item"}
        ),
        ByteEnumField("dir", 0, {0: "received", 1: "sent"}),
        ByteField("verdict", 0),
        LongField("boot", 0),
        LongField("cap_seq", 0),
        IntField("messages", 1),
        FieldLenField("peer_bytes", None, fmt="B", length_of="peer"),
        StrLenField("peer", b"", length_from=lambda packet: packet.peer_bytes),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Raw if self.kind else type(message_class(payload))


conf.l2types.register(LINKTYPE_USER0, BuscouplerCapture)


class Reassembler(Protocol):
    """A collector of CAN transfers, like that of `bridges.media.can.codec`."""

    def feed(self, now: float, identifier: int, data: bytes) -> bytes | None:
        """Return the message that a frame completes, or None."""


def transfers(frames: Iterable[Packet], reassembler: Reassembler) -> Iterator[tuple[float, int, Packet]]:
    """Reassemble messages from CAN frames (`CAN`, `CANFD` of scapy). Yield time (s), node and message."""
    for frame in frames:
        if CAN not in frame and CANFD not in frame:
            continue
        layer = frame[CAN] if CAN in frame else frame[CANFD]
        message = reassembler.feed(float(frame.time), int(layer.identifier), bytes(layer.data))
        if message is not None:
            yield float(frame.time), int(layer.identifier) & _NODE_MAX, message_class(message)
