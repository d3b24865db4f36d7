"""Packets of XBee modules are those of digi-xbee, both ways; others have a reason, and none raises."""

import random
from typing import Any

import pytest

from bridges.protocols.xbee.api import framed
from bridges.protocols.xbee.packets import (
    REQUEST_BYTES,
    STATUS_BYTES,
    Delivery,
    ModemStatus,
    Received,
    failure,
    parse,
    request,
)
from tests.bridges.protocols.xbee import xbee_support as digi

ESCAPED = pytest.mark.parametrize("escaped", [False, True])


@ESCAPED
def test_digi_xbee_reads_a_request_and_writes_the_same(escaped: bool) -> None:
    chance = random.Random(3)
    for size in (1, 2, 84, 256):
        data = bytes(chance.choices(b"\x7e\x7d\x11\x13ab", k=size))
        frame = framed(request(255, digi.HALL, data), escaped)
        packet = digi.parsed(frame, escaped)
        assert isinstance(packet, digi.TransmitPacket)
        assert (packet.frame_id, bytes(packet.rf_data)) == (255, data)
        assert packet.x64bit_dest_addr == digi.long_address(digi.HALL)
        assert (packet.broadcast_radius, packet.transmit_options) == (0, 0)
        assert digi.output(packet, escaped) == frame
    assert len(framed(request(1, digi.KITCHEN, b""), False)) == REQUEST_BYTES


def contents(frame: bytes) -> bytes:
    return frame[3:-1]


def test_what_digi_xbee_writes_is_read() -> None:
    outcomes, events = list(digi.TransmitStatus), list(digi.ModemStatus)
    assert parse(contents(digi.received(digi.KITCHEN, b"21.5"))) == Received(digi.KITCHEN, b"21.5")
    assert parse(contents(digi.received(0, b""))) == Received(0, b"")
    assert [parse(contents(digi.status(7, one))) for one in outcomes] == [
        Delivery(7, o.code) for o in outcomes
    ]
    assert [parse(contents(digi.event(one))) for one in events] == [ModemStatus(one.code) for one in events]
    assert len(digi.status(1)) == STATUS_BYTES


def other_packets() -> list[tuple[Any, str]]:
    from digi.xbee.packets.common import ATCommResponsePacket, ExplicitRXIndicatorPacket
    from digi.xbee.packets.raw import RX64Packet

    explicit = ExplicitRXIndicatorPacket(digi.long_address(1), digi.SHORT, 1, 1, 1, 1, 1, bytearray(b"x"))
    old = RX64Packet(digi.long_address(1), 40, 0, bytearray(b"x"))
    return [(ATCommResponsePacket(1, "NP"), "AT response"), (explicit, "other frame"), (old, "other frame")]


def test_other_frames_have_a_reason() -> None:
    assert [parse(contents(digi.output(one, False))) for one, _ in other_packets()] == [
        why for _, why in other_packets()
    ]
    short = [contents(one)[:-1] for one in (digi.received(1, b""), digi.status(1))]
    assert [parse(one) for one in (*short, b"\x8a", b"\x8a\x00\x00")] == ["malformed"] * 4
    assert all(isinstance(parse(bytes((kind,))), str) for kind in range(256))


def test_a_failure_has_words_and_its_code() -> None:
    assert failure(0x24) == "address not found (0x24)"
    assert failure(0x01) == "no acknowledgement (0x01)"
    assert failure(0x21) == "no acknowledgement from the network (0x21)"
    assert failure(0xFE) == "delivery status 0xFE"
