"""Tests of the search for loops: what counts as one, and that the quick answer is that of the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.schema import Where
from topologies.checks.checker import check
from topologies.checks.cycles import has_loop
from topologies.loading.loader import loads
from topologies.wiring.graph import both_ways, reached, ways_of
from topologies.wiring.segments import Edge

ENDS = st.sampled_from("abcdefgh")
LINKS = st.lists(st.tuples(ENDS, ENDS, st.booleans()), max_size=12)


@given(LINKS)
def test_a_plain_link_is_in_a_loop_if_another_way_joins_its_ends(links: list[tuple[str, str, bool]]) -> None:
    def is_in_loop(number: int) -> bool:
        one, other, trunk = links[number]
        others = (link[:2] for link in links[:number] + links[number + 1 :])
        return not trunk and other in reached(one, ways_of(both_ways(others)))

    edges = [Edge(*link, Where("t.yaml", place)) for place, link in enumerate(links)]
    found = has_loop(sorted(edges, key=lambda edge: not edge.trunk))
    assert found == any(is_in_loop(number) for number in range(len(links)))


TMQ = "{can: {channel: can0}}"
HEARD = "{udp: {host: 192.0.2.255, port: 5005, broadcast: true}}"
LINES = HEARD.replace("}}", "}, protocol: {lines: {receive: said}}}")
RAW = "{can: {channel: can0}, protocol: {raw: {root: car, send: [0x321]}}}"
SPLIT = "one: {{on: gw, join: [{{bus: shop}}, {}]}}, two: {{on: gw, join: [{{bus: shop}}, {}]}}"


def rounds(*bridges: str) -> list[str]:
    text = f"""
name: t
gateways: {{gw: {{node: 3}}}}
buses: {{shop: {{on: gw, listen: "tcp://127.0.0.1:19611"}}}}
bridges: {{{", ".join(bridges)}}}
"""
    return [one.text for one in check(loads(text)) if "would go round" in one.text]


@pytest.mark.parametrize(
    "bridges", [f"one: {{on: gw, join: [{{bus: shop}}, {RAW}, {TMQ}]}}", SPLIT.format(RAW, TMQ)]
)
def test_sides_with_tmq_and_with_a_protocol_on_one_can_bus_are_no_ring(bridges: str) -> None:
    assert not rounds(bridges)


@pytest.mark.parametrize("sides", [(TMQ, TMQ), (RAW, RAW), (HEARD, LINES)])
def test_two_sides_of_which_one_may_take_what_the_other_sends_are_a_ring(sides: tuple[str, str]) -> None:
    assert rounds(SPLIT.format(*sides))


def test_sides_that_speak_alike_are_a_ring_beside_one_that_does_not() -> None:
    (told,) = rounds(SPLIT.format(TMQ, TMQ), f"three: {{on: gw, join: [{{bus: shop}}, {RAW}]}}")
    assert "protocol" not in told
