"""Tests of the ranks on shared wires: they are those of their slow definition, on random plants."""

from hypothesis import given
from hypothesis import strategies as st

from topologies.loading.loader import loads
from topologies.resolved.ranks import Rank, Ranks
from topologies.wiring.graph import both_ways, reached, ways_of
from topologies.wiring.segments import Joint, Wiring, wired

BUSES, WIRES = 3, 3
HEAD = "name: p\ngateways: {a: {node: 1}, b: {node: 2}, c: {node: 3}}\nbrokers: {m: {on: a, listen: 'tcp://127.0.0.1:1'}}"
ENDS = st.one_of(
    st.integers(0, BUSES - 1).map("{{bus: p{}}}".format),
    st.integers(0, WIRES - 1).map("{{can: {{channel: can0, fd: true}}, trunk: true, segment: w{}}}".format),
)
ON = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
BRIDGES = st.lists(
    st.tuples(ON, st.sampled_from(["", "g", "h"]), st.tuples(ENDS, ENDS)), min_size=1, max_size=7
)
Bridge = tuple[list[str], str, tuple[str, str]]


def plant(bridges: list[Bridge]) -> Wiring:
    text = [HEAD, "buses:", *(f"  p{n}: {{on: {'abc'[n]}}}" for n in range(BUSES)), "bridges:"]
    for number, (on, group, ends) in enumerate(bridges):
        more = f", group: {group}" if group else ""
        text.append(f"  b{number}: {{on: [{', '.join(on)}], join: [{', '.join(ends)}]{more}}}")
    return wired(loads("\n".join(text)))


def rank(wiring: Wiring, joint: Joint) -> Rank:
    """Find the rank of a side as it is defined: by what is connected without its wire."""
    links = [edge[:2] for edge in wiring.edges if joint.wire not in edge[:2]]
    near = reached(f"bridge {joint.bridge}", ways_of(both_ways(links)))
    beside = {
        one.bridge for one in wiring.joints if one.wire == joint.wire and f"bridge {one.bridge}" in near
    }
    mates = wiring.candidates[joint.bridge]
    ahead = [n for n in wiring.topology.bridges if n in beside or n == mates[0].bridge]
    groups = list(dict.fromkeys(wiring.candidates[name][0] for name in ahead))
    return Rank(mates.index(joint.candidate), groups.index(mates[0]))


@given(BRIDGES)
def test_ranks_are_those_of_the_definition(bridges: list[Bridge]) -> None:
    wiring = plant(bridges)
    ranks = Ranks(wiring)
    for joint in wiring.joints:
        medium = joint.side.medium
        shared = joint.trunk and medium is not None and medium.shared
        assert ranks.of(joint) == (rank(wiring, joint) if shared else Rank(0, 0))
