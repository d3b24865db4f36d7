"""XBee modules: packets in and out, each settled by its transmit status, and what modules tell."""

from typing import Any

import pytest

from bridges.protocols.translator import Sent
from bridges.protocols.xbee.protocol import Xbee
from bridges.protocols.xbee.translator import SILENCE_S, XbeeTranslator
from tests.bridges.protocols.spoken_support import message, told, translator
from tests.bridges.protocols.xbee import xbee_support as digi

NODES = {"kitchen": f"{digi.KITCHEN:016X}"}


def made(**settings: Any) -> XbeeTranslator:
    found = translator(Xbee(nodes=NODES, send=("kitchen", f"{digi.HALL:016x}", "all"), **settings))
    assert isinstance(found, XbeeTranslator)
    return found


def packet_of(sent: Sent[bytes], escaped: bool = False) -> Any:
    """Return the packet of a message, as digi-xbee reads it."""
    assert sent.held
    (item,) = sent.items
    return digi.parsed(item, escaped)


@pytest.mark.parametrize("escaped", [False, True])
def test_what_modules_send_has_their_name_or_address(escaped: bool) -> None:
    one = made(escaped=escaped)
    line = digi.received(digi.KITCHEN, b"21.5", escaped) + digi.received(digi.HALL, b"\x7e\x7d", escaped)
    found = one.receive([line[:9], line[9:]], 0.0)
    assert told(found, "xbee", "kitchen", "0013A2007D117E13") == [
        ("xbee/kitchen", b"21.5"),
        ("xbee/0013A2007D117E13", b"\x7e\x7d"),
    ]
    assert (one.take_counts(), one.wire.stats.rejected) == ((2, 0), {})


@pytest.mark.parametrize(
    ("name", "address"), [("kitchen", digi.KITCHEN), (f"{digi.HALL:016X}", digi.HALL), ("all", 0xFFFF)]
)
@pytest.mark.parametrize("escaped", [False, True])
def test_what_leaves_goes_to_the_module_of_its_pattern(name: str, address: int, escaped: bool) -> None:
    packet = packet_of(made(escaped=escaped).send(message(f"xbee/{name}", b"on"), 0.0), escaped)
    assert packet.x64bit_dest_addr == digi.long_address(address)
    assert bytes(packet.rf_data) == b"on"


def test_what_no_packet_holds_is_dropped_with_its_reason() -> None:
    one = made()
    offered = [
        message("xbee/kitchen", b"x" * 85), message("xbee/kitchen"), message("xbee/attic", b"x"),
        message("xbee", b"x"), message("xbee/kitchen/lamp", b"x"), message("zwave/kitchen", b"x"),
    ]  # fmt: skip
    whys = [one.send(frame, 0.0).why for frame in offered]
    assert whys == ["oversize", "empty"] + ["not sent here"] * 4
    assert one.send(message("xbee/kitchen", b"x" * 84), 0.0).held
    assert one.send(message("xbee/kitchen", b"x"), 0.0).why == "queue full"  # its status is awaited
    assert translator(Xbee(nodes=NODES)).send(message("xbee/kitchen", b"x"), 0.0).why == "not sent here"


@pytest.mark.parametrize(
    ("outcome", "why", "words"),
    [
        (digi.TransmitStatus.SUCCESS, "", ""),
        (digi.TransmitStatus.ADDRESS_NOT_FOUND, "undelivered", "kitchen: address not found (0x24)"),
        (digi.TransmitStatus.PAYLOAD_TOO_LARGE, "oversize", "kitchen: the packet is too large (0x74)"),
    ],
)
def test_a_packet_is_settled_by_its_transmit_status(outcome: Any, why: str, words: str) -> None:
    one, frame = made(), message("xbee/kitchen", b"on")
    packet = packet_of(one.send(frame, 0.0))
    assert (one.is_free, one.settled) == (False, [])
    one.receive([digi.status(packet.frame_id, outcome)], 0.1)
    assert (one.is_free, one.settled, one.condition) == (True, [(len(frame), why)], words)
    one.receive([digi.received(digi.KITCHEN, b"here")], 0.2)
    assert one.condition == ""
    one.receive([digi.status(packet.frame_id)], 0.3)
    assert one.wire.stats.rejected == {"other status": 1}
    assert len(one.settled) == 1


def test_a_status_for_a_packet_of_before_a_restart_settles_none_of_after_it() -> None:
    """The module was given a packet; the wire, or the gateway, was opened again before its status came."""
    before = packet_of(made().send(message("xbee/kitchen", b"on"), 100.0))
    after = made()
    after.send(message("xbee/kitchen", b"off"), 100.3)
    after.receive([digi.status(before.frame_id)], 100.4)
    assert (after.settled, after.wire.stats.rejected) == ([], {"other status": 1})


def test_several_packets_may_wait_and_each_has_its_own_status() -> None:
    one = made(unanswered=2)
    frames = [message("xbee/kitchen", b"1"), message("xbee/all", b"two")]
    ids = [packet_of(one.send(frame, 0.0)).frame_id for frame in frames]
    assert not one.is_free
    one.receive([digi.status(ids[1], digi.TransmitStatus.NO_ACK)], 0.1)
    assert (one.is_free, one.settled) == (True, [(len(frames[1]), "undelivered")])
    assert (one.give_up(), one.give_up()) == (frames[:1], [])


def test_a_module_that_tells_nothing_is_no_reason_to_wait_for_ever() -> None:
    one = made(status_ms=2000)
    one.send(message("xbee/kitchen", b"on"), 5.0)
    assert one.due_s == 7.0
    one.turn(7.0)
    assert (one.is_free, [why for _, why in one.settled]) == (True, ["undelivered"])
    assert one.condition == "the module tells no transmit status: has it API mode 1?"
    packet = packet_of(one.send(message("xbee/kitchen", b"on"), 8.0))
    one.receive([digi.status(packet.frame_id)], 8.1)
    assert one.condition == ""


def test_a_module_whose_statuses_come_too_late_is_not_said_to_tell_none() -> None:
    """The state does not swing between the two: each change of it is an event."""
    one = made(status_ms=1000)
    conditions = list[str]()
    for begin_s in (0.0, 10.0, 20.0):
        packet = packet_of(one.send(message("xbee/kitchen", b"x"), begin_s))
        one.turn(begin_s + 1.0)
        conditions.append(one.condition)
        one.receive([digi.status(packet.frame_id)], begin_s + 1.5)
        conditions.append(one.condition)
    none, late, *others = conditions
    assert none.startswith("the module tells no transmit status")
    assert late == "transmit statuses come later than `status_ms`"
    assert others == [late] * 4
    packet = packet_of(one.send(message("xbee/kitchen", b"x"), 30.0))
    one.receive([digi.status(packet.frame_id)], 30.5)
    assert one.condition == ""
    one.receive([digi.status(packet.frame_id)], 30.6)  # of nothing that waits
    assert one.condition == ""


def test_a_module_tells_of_its_network_and_of_resets_which_lose_what_it_had() -> None:
    one = made()
    one.receive([digi.event(digi.ModemStatus.DISASSOCIATED)], 0.0)
    assert one.condition == "the module has lost its network"
    one.receive([digi.event(digi.ModemStatus.JOINED_NETWORK)], 0.0)
    assert (one.condition, one.take_counts()) == ("", (2, 0))
    one.send(message("xbee/kitchen", b"on"), 0.0)
    one.receive([digi.event(digi.ModemStatus.HARDWARE_RESET)], 0.0)
    assert (one.is_free, [why for _, why in one.settled]) == (True, ["undelivered"])
    assert one.wire.stats.rejected == {"module reset": 1}


def test_answers_to_at_commands_are_ignored_but_counted() -> None:
    from digi.xbee.packets.common import ATCommResponsePacket

    one = made()
    assert one.receive([digi.output(ATCommResponsePacket(1, "NP"), False)], 0.0) == []
    assert one.wire.stats.rejected == {"AT response": 1}


def test_a_frame_that_pauses_for_long_is_given_up_and_what_stands_in_it_comes() -> None:
    one = made()
    assert one.receive([b"\x7e\x01\x00" + digi.received(digi.KITCHEN, b"21.5")], 3.0) == []
    assert one.due_s == 3.0 + SILENCE_S
    assert told(one.turn(one.due_s).messages, "xbee", "kitchen") == [("xbee/kitchen", b"21.5")]
    assert one.receive([digi.received(digi.KITCHEN, b"21.5")[:-1]], 5.0) == one.end(5.1) == []
    assert one.wire.stats.rejected == {"unfinished": 2}
