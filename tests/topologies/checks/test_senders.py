"""`check` refuses what leaves and would come back as new, on wires that do not say who sent a frame."""

import pytest

from tests.topologies.support import errors

TOP = """name: t
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2}, c: {address: 10.0.0.3}}
brokers: {m: {on: c, listen: "tcp://0.0.0.0:9942"}}
buses: {one: {on: a}, two: {on: a}, far: {on: b}, hub: {on: c, listen: "tcp://0.0.0.0:7001"}}
bridges:
"""
CAN = "can: {channel: can0, bitrate: 500000}, segment: wire"
UNMARKED = "can: {interface: pcan, channel: PCAN_USBBUS1, bitrate: 500000}, segment: wire"
ALL, APART, BOTH = "send: all", "receive: [0x100], send: [0x200]", "receive: [0x100, 0x200], send: [0x200]"
LATER = "receive: [0x200], send: [0x300]"


def bridge(name: str, on: str, bus: str, raw: str, can: str = CAN) -> str:
    side = f"{{{can}, protocol: {{raw: {{root: car, {raw}}}}}}}"
    return f"  {name}: {{on: {on}, pattern: {name}, join: [{{bus: {bus}}}, {side}]}}\n"


def echoes(*bridges: str) -> list[str]:
    return [one for one in errors(TOP + "".join(bridges)) if "so it would come back as new" in one]


@pytest.mark.parametrize(
    ("bridges", "words"),
    [
        ([bridge("x", "a", "one", ALL)], None),
        ([bridge("x", "a", "one", BOTH)], None),
        ([bridge("x", "a", "one", APART)], None),
        ([bridge("x", "a", "one", ALL, UNMARKED)], "nothing marks our own frames on can pcan"),
        ([bridge("x", "a", "one", BOTH, UNMARKED)], "0x200"),
        ([bridge("x", "a", "one", APART, UNMARKED)], None),
        ([bridge("x", "[a, b]", "hub", ALL)], "a, b are on this wire"),
        ([bridge("x", "[a, b]", "hub", BOTH)], "0x200"),
        ([bridge("x", "[a, b]", "hub", APART)], None),
        ([bridge("x", "a", "one", ALL), bridge("y", "b", "far", APART)], "a, b are on this wire"),
        ([bridge("x", "a", "one", APART), bridge("y", "a", "two", LATER)], "sends on the same channel"),
        ([bridge("x", "a", "one", APART), bridge("y", "a", "two", "receive: [0x100], send: [0x300]")], None),
    ],
)
def test_one_identifier_has_one_sender(bridges: list[str], words: str | None) -> None:
    found = echoes(*bridges)
    assert bool(found) == (words is not None), found
    assert words is None or words in found[0]
