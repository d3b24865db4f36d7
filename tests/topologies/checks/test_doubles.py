"""`check` warns of values that two devices would give one pattern."""

import pytest

from tests.topologies.support import GATEWAY, PAIR, warnings

BUSES = (
    'buses:\n  p: {on: gw, listen: "tcp://127.0.0.1:7001"}\n  q: {on: gw, listen: "tcp://127.0.0.1:7002"}\n'
)
SCALE = "queries: {queries: [{ask: W, pattern: scale/weight}]}"
SUPPLY = 'queries: {queries: [{ask: "VOLT?", pattern: scale/weight}]}'


def told(one: str, other: str, bus: str = "bus: p", more: str = "") -> list[str]:
    """Return what is said of two devices on a bus of one name."""
    return warnings(
        f"{GATEWAY}{BUSES}bridges:\n"
        f"  a: {{on: gw, join: [{{bus: p}}, {{uart: /dev/ttyS8, protocol: {{{one}}}}}]}}\n"
        f"  b: {{on: gw, join: [{{{bus}}}, {{uart: /dev/ttyS9, protocol: {{{other}}}{more}}}]}}\n"
    )


def test_a_value_of_two_devices_is_told_with_the_other_place() -> None:
    (text,) = told(SCALE, SUPPLY)
    assert text == (
        "scale/weight can come from bridge a (line 7) too, and nobody could tell them apart: "
        "give each device a root or pattern of its own"
    )


def test_two_devices_of_one_root_are_told_once() -> None:
    (text,) = told("vedirect: {root: solar}", "vedirect: {root: solar}")
    assert text.startswith("solar/V and 62 more can come from bridge a (line 7) too")
    assert told("vedirect: {root: solar}", "vedirect: {root: roof}") == []


def test_two_sides_of_one_bridge_are_told() -> None:
    sides = ", ".join(f"{{uart: /dev/ttyS{n}, protocol: {{{SCALE}}}}}" for n in (8, 9))
    (text,) = warnings(f"{GATEWAY}{BUSES}bridges: {{a: {{on: gw, join: [{{bus: p}}, {sides}]}}}}\n")
    assert text.startswith("scale/weight can come from bridge a")


@pytest.mark.parametrize(
    ("bus", "more"),
    [("bus: q", ""), ("bus: p, prefix: hall", ""), ("bus: p", ", prefix: hall"), ("bus: p", ", pattern: x")],
    ids=["another bus", "named on the bus", "named at the device", "filtered"],
)
def test_values_that_do_not_meet_are_not_told(bus: str, more: str) -> None:
    assert not [text for text in told(SCALE, SCALE, bus, more) if "tell them apart" in text]


def test_a_gateway_that_stands_in_for_another_has_the_same_device() -> None:
    buses = 'buses:\n  p: {on: a, listen: [{url: "tcp://10.0.0.1:7001", trunk: true}]}\n'
    side = "{tcp: {host: 10.0.0.9, port: 5025}, protocol: {" + SCALE + "}}"
    text = f"{PAIR}{buses}bridges:\n  x: {{on: [a, b], join: [{{bus: p, trunk: true}}, {side}]}}\n"
    assert not [one for one in warnings(text) if "tell them apart" in one]
