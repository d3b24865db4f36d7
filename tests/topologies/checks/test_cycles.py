"""Tests of the search for loops: the quick answer whether there is one is that of its definition."""

from hypothesis import given
from hypothesis import strategies as st

from bus.schema import Where
from topologies.checks.cycles import has_loop
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
