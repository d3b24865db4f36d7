"""Tests of the searches in graphs: they find what their slow definitions say, on random graphs."""

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from topologies.wiring.graph import blocks, both_ways, core, reached, ways_of

Links = list[tuple[str, str]]
LINKS = st.lists(st.tuples(st.sampled_from("abcdefghi"), st.sampled_from("abcdefghi")), max_size=14)


def connected(one: str, other: str, links: Links) -> bool:
    """Tell whether links join two nodes, by following all of them until nothing is new."""
    found, grown = {one}, True
    while grown:
        near = {end for link in links if found & {*link} for end in link}
        grown, found = not near <= found, found | near
    return other in found


def test_a_node_reaches_itself_and_what_is_behind_others() -> None:
    ways = ways_of([("a", "b"), ("b", "c"), ("d", "a")])
    assert reached("a", ways) == {"a", "b", "c"}
    assert reached("a", ways, {"b"}) == {"a"}
    assert reached("x", ways) == {"x"}


def test_parallel_links_are_a_ring_and_a_link_to_itself_is_none_for_others() -> None:
    one, other, own, way = blocks([("a", "b"), ("b", "a"), ("b", "b"), ("b", "c")])
    assert one == other
    assert len({one, own, way}) == 3


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain = [(str(number), str(number + 1)) for number in range(5000)]
    assert len({*blocks(chain)}) == 5000
    assert len({*blocks([*chain, ("5000", "0")])}) == 1


@given(LINKS)
def test_reached_is_what_links_join_in_any_number_of_steps(links: Links) -> None:
    found = reached("a", ways_of(both_ways(links)))
    assert found == {node for node in "abcdefghi" if connected("a", node, links)}


@given(LINKS)
def test_a_link_alone_in_its_block_is_the_only_way(links: Links) -> None:
    found = blocks(links)
    size = Counter(found)
    for number, (one, other) in enumerate(links):
        others = links[:number] + links[number + 1 :]
        is_ring = one != other and connected(one, other, others)
        assert is_ring == (size[found[number]] > 1)


@given(LINKS)
def test_links_at_a_node_are_of_one_block_if_another_way_joins_their_ends(links: Links) -> None:
    found = blocks(links)
    for (first, one), (second, other) in combinations(enumerate(links), 2):
        for node in {*one} & {*other}:
            ends = [end for link in (one, other) for end in link if end != node]
            if len(ends) == 2:
                without = [link for link in links if node not in link]
                assert (found[first] == found[second]) == connected(ends[0], ends[1], without)


def test_the_core_has_rings_and_what_joins_them_but_no_branches() -> None:
    ring, other, joint = [("a", "b"), ("b", "c"), ("c", "a")], [("x", "y"), ("y", "x")], [("a", "x")]
    branch = [("c", "e"), ("e", "f")]
    assert core([*ring, *branch, *other, *joint]) == {0, 1, 2, 5, 6, 7}
    assert core([*branch, *joint]) == set()
    assert core([("a", "a"), ("a", "b")]) == {0}


@given(LINKS)
def test_the_core_is_what_is_left_when_no_link_has_an_end_of_its_own(links: Links) -> None:
    left = dict(enumerate(links))
    while True:
        ends = Counter(node for link in left.values() for node in {*link})
        last = [
            number for number, (one, other) in left.items() if one != other and 1 in (ends[one], ends[other])
        ]
        if not last:
            break
        del left[last[0]]
    assert core(links) == {*left}
