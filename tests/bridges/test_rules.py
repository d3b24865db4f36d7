import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.rules import Rule, Rules, Seen
from bus.wire.frame import pack
from bus.wire.pattern import Pattern

tokens = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(
    st.lists(tokens, max_size=3),
    st.lists(tokens, max_size=2),
    tokens,
    st.binary(max_size=8),
    st.integers(0, 12),
)
def test_a_rule_is_what_patterns_say(
    allow: list[tuple[int, ...]],
    deny: list[tuple[int, ...]],
    names: tuple[int, ...],
    data: bytes,
    start: int,
) -> None:
    rule = Rule(allow, deny)
    expected = (not allow or any(Pattern(*p).matches(names) for p in allow)) and not any(
        Pattern(*p).matches(names) for p in deny
    )
    assert Rules(rule).admit(bytes(start) + pack(1, names, data), start) == expected
    assert rule or expected


def test_data_is_not_taken_for_tokens() -> None:
    rules = Rules(Rule([(1, 2)]))
    assert not rules.admit(pack(1, (1,), b"\0\0\0\2"))
    assert rules.admit(pack(1, (1, 2)))


@pytest.mark.parametrize(
    ("allow", "deny", "filters"), [((), (), False), ([()], (), False), ([(1,)], (), True)]
)
def test_a_rule_knows_whether_it_filters(
    allow: list[tuple[int]], deny: list[tuple[int]], filters: bool
) -> None:
    assert bool(Rule(allow, deny)) is filters


def test_a_key_lives_five_to_ten_seconds() -> None:
    seen = Seen()
    seen.advance(100.0)
    assert seen.add(7)
    for now in (100.0, 104.9, 105.0, 109.9):
        seen.advance(now)
        assert not seen.add(7)
    seen.advance(110.0)
    assert seen.add(7)


def test_a_long_silence_forgets_everything() -> None:
    seen = Seen()
    seen.advance(0.0)
    seen.add(7)
    seen.advance(60.0)
    assert len(seen) == 0


def test_the_number_of_keys_is_bounded() -> None:
    seen = Seen(cap=100)
    seen.advance(0.0)
    sizes = list[int]()
    for key in range(1000):
        assert seen.add(key)
        sizes.append(len(seen))
    assert (min(sizes[100:]), max(sizes)) == (51, 100)
    assert not seen.add(999)
    assert not seen.add(951)


def test_beyond_the_bound_the_source_with_the_most_keys_forgets_its_oldest() -> None:
    seen = Seen(cap=100)
    quiet, loud = seen.source(), seen.source()
    assert all(quiet.add(key) for key in range(30))
    assert all(loud.add(key) for key in range(1000, 2000))
    assert not any(loud.add(key) for key in range(30))
    assert not loud.add(1999)
    assert quiet.add(1000)
    assert len(seen) <= 100


def test_a_key_without_hops_left_hides_its_like_only() -> None:
    seen = Seen()
    assert seen.add_spent(7)
    assert not seen.add_spent(7)
    assert seen.add(7)
    assert not seen.add(7)
    assert seen.add(8)
    assert not seen.add_spent(8)


def test_a_source_that_leaves_is_remembered_and_leaves_nothing_behind() -> None:
    seen = Seen()
    seen.advance(0.0)
    for key in range(100):
        source = seen.source()
        source.add(key)
        seen.leave(source)
    assert not any(seen.add(key) for key in range(100))
    seen.advance(5.0)
    assert not seen.add(0)
    seen.advance(10.0)
    assert len(seen) == 0


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 20)), max_size=200))
def test_what_is_remembered_is_exact(steps: list[tuple[float, int]]) -> None:
    seen, now = Seen(), 0.0  # the margins are for sums of floats
    accepted: dict[int, float] = {}
    for step, key in steps:
        now += step
        seen.advance(now)
        new = seen.add(key)
        age = now - accepted.get(key, float("-inf"))
        assert new or age <= 10.001
        assert not new or age >= 4.999
        if new:
            accepted[key] = now


def test_a_rule_looks_at_as_many_bytes_as_its_longest_pattern_has() -> None:
    assert Rule().reach == 0
    assert Rule([(1,)], [(1, 2), (3,)]).reach == 8


@pytest.mark.parametrize("count", [1, 2, 5, 255])
def test_the_first_test_of_hot_loops_is_exact_where_one_rule_decides_alone(count: int) -> None:
    """Else a frame with too few tokens would pass whose data look like the tokens that are missing."""
    one = Rules(Rule([range(count)]))
    assert (one.tokens_min, one.more) == (count, False)
    assert Rules(Rule([range(count)]), Rule(deny=[(9,)])).more
    assert (Rules().tokens_min, Rules().more) == (0, False)


@pytest.mark.parametrize(
    ("rule", "heads", "opaque"),
    [
        (Rule(), (), True),
        (Rule([()]), (b"",), True),
        (Rule([(1,), (2,)]), (b"\0\0\0\1", b"\0\0\0\2"), False),
        (Rule([(1,), (2, 3)]), (), False),
        (Rule([(1,), ()]), (), True),
        (Rule(deny=[(1,)]), (), True),
        (Rule([(1,)], [(1, 2)]), (), False),
    ],
)
def test_a_rule_knows_what_decides_alone_and_whether_other_messages_pass(
    rule: Rule, heads: tuple[bytes, ...], opaque: bool
) -> None:
    assert (rule.heads, rule.opaque) == (heads, opaque)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9])
def test_data_are_not_taken_for_the_last_token_of_any_pattern(count: int) -> None:
    rules = Rules(Rule([range(count + 1)]), Rule(deny=[(9,)]))
    assert not rules.admit(pack(1, range(count), count.to_bytes(4, "big") * 2))
    assert rules.admit(pack(1, range(count + 1)))


def test_different_keys_without_hops_left_are_different() -> None:
    seen = Seen()
    assert seen.add_spent(7)
    assert seen.add_spent(8)
    assert seen.add_spent(0)


@pytest.mark.parametrize(("cap", "left"), [(3, 1), (4, 2), (5, 2), (100, 50)])
def test_the_older_half_is_forgotten_to_make_room(cap: int, left: int) -> None:
    seen = Seen(cap=cap)
    assert all(seen.add(key) for key in range(cap + 1))
    assert len(seen) == left + 1
    assert not any(seen.add(key) for key in range(cap - left, cap + 1))


def test_what_is_young_is_not_lost_when_the_older_half_is_forgotten() -> None:
    seen = Seen(cap=4)
    seen.advance(0.0)
    assert all(seen.add(key) for key in range(3))
    seen.advance(5.0)
    assert seen.add(3)
    assert seen.add(4)
    assert not any(seen.add(key) for key in (2, 3, 4))
    seen.advance(10.0)
    assert len(seen) == 2
    seen.advance(15.0)
    assert len(seen) == 0


def test_by_default_65536_keys_are_remembered() -> None:
    assert Seen().cap == 65_536


def test_after_exactly_ten_seconds_all_is_forgotten_and_its_time_begins_anew() -> None:
    seen = Seen()
    seen.advance(100.0)
    seen.add(7)
    seen.advance(110.0)
    assert seen.add(7)
    for now in (110.1, 115.1, 119.9):
        seen.advance(now)
        assert not seen.add(7)


def test_a_late_turn_does_not_make_a_key_live_longer() -> None:
    seen = Seen()
    seen.advance(100.0)
    seen.add(7)
    seen.advance(109.0)
    assert not seen.add(7)
    seen.advance(110.0)
    assert seen.add(7)


@given(st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=12))
def test_keys_that_come_together_are_judged_as_those_that_come_alone(batches: list[list[int]]) -> None:
    alone, together = Seen().source(), Seen().source()
    for keys in batches:
        assert together.add_all(keys) == [alone.add(key) for key in keys]
    assert together.young == alone.young


@pytest.mark.parametrize("cap", [4, 10, 25])
@given(st.lists(st.sets(st.integers(0, 200), max_size=12), max_size=20))
def test_room_is_made_for_keys_that_come_together(cap: int, batches: list[set[int]]) -> None:
    seen = Seen(cap=cap)
    source, other = seen.source(), seen.source()
    for number, keys in enumerate(batches):
        (source, other)[number % 2].add_all(list(keys))
        assert len(seen) == len(source) + len(other) <= cap
        assert not any(map(source.add, list(keys)[-1:]))
