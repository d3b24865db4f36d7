"""How long messages may wait on a trunk, by the topology: on rings and where the file says so."""

import pytest

from tests.topologies.support import PAIR, said
from topologies.loading.loader import loads
from topologies.wiring.rings import RING_AGE_S, age_s, ringed
from topologies.wiring.segments import wired

BUSES = """\
name: halls
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}, c: {address: 10.0.0.3}}
buses:
  a: {on: a, listen: {url: "tcp://0.0.0.0:5", trunk: true}, trunks: b}
  b: {on: b, listen: {url: "tcp://0.0.0.0:5", trunk: true}, trunks: c}
  c: {on: c, listen: {url: "tcp://0.0.0.0:5", trunk: true}%s}
"""
CAN = """\
bridges:
  x: {on: a, join: [bus: a, {can: {channel: can0}, trunk: true, segment: w}]}
  y: {on: b, join: [bus: b, {can: {channel: can0}, trunk: true, segment: %s}]}
"""


def test_a_chain_of_trunks_is_no_ring() -> None:
    assert ringed(wired(loads(BUSES % ""))) == set()


def test_all_trunks_of_a_ring_are_of_it() -> None:
    assert ringed(wired(loads(BUSES % ", trunks: a"))) == {"bus a", "bus b", "bus c"}


def test_a_shared_wire_closes_a_ring() -> None:
    one_wire, two_wires = (loads((BUSES % "") + CAN % segment) for segment in ("w", "v"))
    assert ringed(wired(one_wire)) >= {"bus a", "bus b", "bridge x", "bridge y"}
    assert "bus c" not in ringed(wired(one_wire))
    assert ringed(wired(two_wires)) == set()


def test_candidates_of_a_bridge_close_a_ring_although_one_forwards_at_a_time() -> None:
    bridge = "bridges: {x: {on: [a, b], join: [{bus: {a: a, b: b}}, {can: {channel: can0}, trunk: true}]}}\n"
    assert {"bus a", "bus b"} <= ringed(wired(loads((BUSES % "") + bridge)))


def test_a_trunk_that_is_found_by_beacon_may_close_one() -> None:
    assert ringed(wired(loads(BUSES % ", dial: [{url: 'beacon://halls/other', trunk: true}]"))) >= {"bus c"}


def test_the_file_says_it_or_the_ring() -> None:
    rings = frozenset({"bus a"})
    assert age_s("bus a", True, None, rings) == RING_AGE_S
    assert age_s("bus a", False, None, rings) == age_s("bus b", True, None, rings) == 0
    assert age_s("bus a", True, 1500, rings) == age_s("bus b", True, 1500, rings) == 1.5


@pytest.mark.parametrize(
    "address", ["{url: 'tcp://0.0.0.0:5', age_ms: 9}", "{url: 'inproc://x', trunk: true, age_ms: 9}"]
)
def test_an_age_where_nothing_looks_at_it_is_an_error(address: str) -> None:
    text = PAIR + f"buses: {{p: {{on: a, listen: {address}}}, q: {{on: b}}}}\n"
    assert "age_ms has no effect here" in said(text)
