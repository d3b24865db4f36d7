"""The expected segments of frames, derived from most of them: tests on hand-made sums."""

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.analysis.shared.expected import (
    ENVELOPED_UNIT,
    SEGMENTS_A_WORD,
    SENT_UNIT,
    Expected,
    kept,
    learn,
)


def word(received: list[int], sent: list[int]) -> int:
    return sum(1 << n for n in received) + sum(1 << SEGMENTS_A_WORD + n for n in sent)


def rows(received: int, sent: int, enveloped: int = 0) -> int:
    return received + sent * SENT_UNIT + enveloped * ENVELOPED_UNIT


def learned(sums: Iterable[Sequence[int]], words: int, **more: Any) -> Expected:
    """Learn from sums of frames that are all inside the span."""
    return learn([[*one, one[-1]] for one in sums], words, **more)


FINE = [word([0, 1], [1, 2]), rows(3, 2), 7, 100]


def test_what_most_frames_reach_is_expected_of_all() -> None:
    lost = [word([0], [1]), rows(1, 1), 7, 3]
    found = learned([FINE, lost], 1)
    assert found.routes == {(0, 7): frozenset({1, 2})}
    assert [one.frames for one in found.typical] == [100]


def test_one_frame_that_arrived_is_proof_of_a_route_though_most_are_lost() -> None:
    lost = [word([0], []), rows(1, 0), 7, 1000]
    found = learned([[*FINE[:3], 1], lost], 1)
    assert found.routes == {(0, 7): frozenset({1, 2})}
    assert [one.frames for one in found.typical] == [1]


def test_of_several_equal_frames_one_that_passed_is_no_sum_of_one_where_sides_let_few_pass() -> None:
    one_of_three = [word([0], [1]), rows(4, 1), 7, 200]
    assert len(learned([one_of_three], 1).typical) == 1
    assert learned([one_of_three], 1, hubs={0: 2}).typical == []
    assert len(learned([[*one_of_three[:1], rows(2, 1), 7, 200]], 1, hubs={0: 2}).typical) == 1


def test_a_filter_is_no_loss() -> None:
    filtered = [word([0, 1], [1]), rows(2, 1), 8, 50]
    found = learned([FINE, filtered], 1)
    assert found.routes[0, 8] == frozenset({1})
    assert len(found.typical) == 2


def test_an_echo_and_a_double_are_not_typical() -> None:
    echo = [word([0, 1], [0, 1, 2]), rows(3, 3), 7, 2]
    double = [FINE[0], rows(3, 3), 7, 4]
    assert [one.frames for one in learned([FINE, echo, double], 1).typical] == [100]


def test_more_segments_than_a_word_holds() -> None:
    far = SEGMENTS_A_WORD + 3
    two = [word([0], []), word([3], [3]), rows(2, 1), 7, 10]
    found = learned([two], 2)
    assert found.routes == {(0, 7): frozenset({far})}


def test_equal_frames_are_looked_at_however_many_there_are() -> None:
    three = [FINE[0], rows(9, 6), 7, 1000]
    found = learned([FINE, three], 1)
    assert [one.frames for one in found.typical] == [100]
    assert not learned([three], 1).typical


def test_equal_frames_on_a_bus_that_nobody_joined_are_looked_at() -> None:
    assert not learned([[word([0], []), rows(12, 0), 7, 1]], 1).typical


def test_two_ways_round_are_usual_where_envelopes_tell_frames_apart() -> None:
    round_both = [FINE[0], rows(6, 4, enveloped=10), 7, 100]
    assert [one.frames for one in learned([round_both], 1).typical] == [100]


def test_a_heartbeat_that_is_always_equal_is_looked_at() -> None:
    """31 equal frames, of which one was lost: no other frame of the kind says what is usual."""
    beats = [FINE[0], rows(61, 61), 7, 1]
    assert not learned([beats], 1).typical
    # a hundred kinds of frames alike, each put often
    assert len(learned([[*beats[:3], 100]], 1).typical) == 1


EARS = {3: 1, 4: 1}
"""Two buses that hear segment 1."""


def test_what_one_bus_of_two_did_not_hear_is_looked_at() -> None:
    both, one = [word([0, 3, 4], [1]), rows(3, 1), 7, 10], [word([0, 3], [1]), rows(2, 1), 7, 100]
    found = learned([both, one], 1, heard_in=EARS)
    assert found.routes == {(0, 7): frozenset({1})}
    assert [signature.frames for signature in found.typical] == [10]


def test_a_frame_that_enters_where_two_buses_hear_it_is_at_home_there() -> None:
    found = learned([[word([1, 3, 4], [2]), rows(3, 1), 7, 10]], 1, heard_in=EARS)
    assert found.routes == {(1, 7): frozenset({2})}
    assert not found.homeless


def test_what_is_put_and_came_from_nowhere_has_no_home() -> None:
    again = [word([4], [1]), rows(1, 1), 7, 5]
    assert [one.frames for one in learned([FINE, again], 1, heard_in=EARS).homeless] == [5]


def test_a_segment_that_is_due_is_expected_although_no_frame_reached_it() -> None:
    assert learned([FINE], 1, due={(0, 7): frozenset({3}), (0, 8): frozenset({4})}).routes == {
        (0, 7): frozenset({1, 2, 3})
    }
    assert learned([FINE], 1, due={(0, 7): frozenset({2})}).typical == learned([FINE], 1).typical


def test_homes_and_flows_come_with_the_patterns_that_their_frames_start_with() -> None:
    homeless = [word([1], [1]), rows(1, 1), 8, 100]
    assert kept([[*one, one[-1], 5] for one in (FINE, homeless)], 1) == {(0, 7, 5)}
