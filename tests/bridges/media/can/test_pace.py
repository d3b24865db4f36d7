"""When a bus is read: at once, or once in a time while it is a stream; time and counts are given."""

import pytest

from bridges.media.can.pace import ANSWER_S, BUSY_FRAMES, BUSY_S, Driver, Pace

GATHER_S = 0.005
IDLE = Driver()


def frames_apart(pace: Pace, gap_s: float, count: int, start_s: float = 1.0, is_talk: bool = False) -> float:
    """Have frames read one by one until the bus gathers, or all were; return the time of the last."""
    for number in range(count):
        now_s = start_s + number * gap_s
        if pace.look(now_s, 1, is_talk, IDLE) is not None:
            break
    return now_s


def streaming(gather_s: float = GATHER_S) -> tuple[Pace, float]:
    pace = Pace(gather_s)
    now_s = frames_apart(pace, 0.00025, 40)
    assert pace.is_gathering
    return pace, now_s


@pytest.mark.parametrize("gap_s", [1.0, 0.01, BUSY_S / (BUSY_FRAMES - 2)])
def test_lone_frames_and_a_slow_bus_are_never_held(gap_s: float) -> None:
    pace = Pace(GATHER_S)
    frames_apart(pace, gap_s, 1000)
    assert not pace.is_gathering


def test_a_dialogue_is_never_held_however_quick() -> None:
    pace = Pace(GATHER_S)
    frames_apart(pace, 0.0001, 1000, is_talk=True)
    assert not pace.is_gathering


def test_a_stream_of_a_full_slow_bus_gathers() -> None:
    """500 kbit/s and 8 bytes: 3,704 frames a second. One that is told once too often still ends."""
    pace = Pace(GATHER_S)
    now_s = frames_apart(pace, 1 / 3704, 40)
    assert pace.is_gathering
    assert pace.look(now_s + 0.005, 18, False, IDLE) == pytest.approx(now_s + 0.01, abs=GATHER_S)


@pytest.mark.parametrize("rate", [2_500, 3_704, 7_407, 18_182])
@pytest.mark.parametrize("phase", [0.0, 0.2, 0.5, 0.7, 0.8, 0.9])
def test_a_steady_stream_gathers_whenever_it_begins(rate: int, phase: float) -> None:
    """Its first look may come right after the frame that made it a stream, and find only one or two more."""
    pace, looks, seen = Pace(GATHER_S), 0, 0
    start_s = now_s = 1.0 + phase * GATHER_S
    while now_s < start_s + 1:
        came = int((now_s - start_s) * rate) + 1
        due_s = pace.look(now_s, came - seen, False, IDLE)
        looks, seen = looks + 1, came
        now_s = start_s + came / rate + 1e-9 if due_s is None else due_s + 1e-6
    assert looks < 1 / GATHER_S + 4 * BUSY_FRAMES


@pytest.mark.parametrize("gather_s", [0.0005, 0.002, 0.005, 0.02])
def test_looks_are_at_times_that_all_buses_share_and_never_further_apart(gather_s: float) -> None:
    (one, one_s), (other, _) = streaming(gather_s), streaming(gather_s)
    other_s = one_s + gather_s / 3
    for _ in range(50):
        one_due_s, other_due_s = one.look(one_s, 400, False, IDLE), other.look(other_s, 400, False, IDLE)
        assert one_due_s is not None
        assert other_due_s is not None
        assert one_s < one_due_s <= one_s + gather_s * 1.001
        assert one_due_s / gather_s == pytest.approx(round(one_due_s / gather_s))
        assert other_due_s == one_due_s or other_s > one_due_s or one_due_s - other_s < 1e-9
        one_s, other_s = one_due_s + 0.00005, one_due_s + 0.00006


def test_what_few_frames_mean_depends_on_the_time_in_which_they_came() -> None:
    pace, now_s = streaming()
    assert pace.look(now_s + 0.001, 2, False, IDLE) is not None
    assert pace.look(now_s + 0.001 + 4 * GATHER_S, 29, False, IDLE) is None  # the loop stood still


@pytest.mark.parametrize("frames", [0, 1, 7])
def test_a_look_that_finds_too_little_ends_it_at_once(frames: int) -> None:
    pace, now_s = streaming()
    assert pace.look(now_s + GATHER_S, 8, False, IDLE) is not None
    assert pace.look(now_s + 2 * GATHER_S, frames, False, IDLE) is None
    assert not pace.is_gathering
    next_s = now_s + 2 * GATHER_S
    assert pace.look(next_s, BUSY_FRAMES - 1, False, IDLE) is None  # and the next one begins anew


def test_a_stream_that_becomes_a_dialogue_ends_it_at_the_next_look_which_is_soon() -> None:
    pace, now_s = streaming()
    due_s = pace.look(now_s + GATHER_S, 100, True, IDLE)
    assert due_s is not None
    assert due_s <= now_s + GATHER_S + ANSWER_S
    assert pace.look(due_s, 1, True, IDLE) is None
    assert not pace.is_gathering


@pytest.mark.parametrize("rate", [2_000, 3_704, 7_407])
def test_an_answer_beside_a_stream_waits_no_longer_than_it_took(rate: int) -> None:
    """The stream gathers all the same, as if nobody had spoken."""
    pace, now_s = streaming()
    said_s = now_s = (now_s // GATHER_S + 2) * GATHER_S + 1e-6
    due_s = pace.look(now_s, int(rate * GATHER_S) + 1, True, IDLE)
    gaps = list[float]()
    while due_s is not None and due_s < said_s + 4 * GATHER_S:
        gaps.append(due_s - now_s)
        assert gaps[-1] <= now_s - said_s + ANSWER_S + 1e-9
        next_s = due_s + 1e-6
        frames, now_s = int((next_s - said_s) * rate) - int((now_s - said_s) * rate), next_s
        due_s = pace.look(now_s, frames, False, IDLE)
    assert due_s is not None
    assert gaps[-1] == pytest.approx(GATHER_S, rel=0.01)
    assert len(gaps) < 10


def test_messages_that_wait_for_room_are_not_kept_until_the_shared_time() -> None:
    pace, now_s = streaming()
    waiting = Driver(waits=True, most=10)
    for number in range(1, 20):
        due_s = pace.look(now_s + number * 0.001, 10, False, waiting)  # 10,000 frames a second
        assert due_s is not None
    assert due_s == pytest.approx(now_s + 0.0195)  # 5 frames later
    assert pace.refill_s(2.0) == pytest.approx(2.0005)


def test_a_driver_that_ran_dry_is_looked_at_again_at_once_and_earlier_from_then_on() -> None:
    pace, now_s = streaming()
    dry, waiting = Driver(waits=True, most=10, ran_dry=True), Driver(waits=True, most=10)
    now_s += GATHER_S
    assert pace.look(now_s, 8, False, waiting) == pytest.approx(now_s + 0.003125)
    assert pace.look(now_s, 10, False, dry) == now_s
    first_s = pace.look(now_s, 0, False, waiting)  # too few, but right behind the one before
    pace.look(now_s, 10, False, dry)
    second_s = pace.look(now_s, 0, False, waiting)
    assert first_s is not None
    assert second_s is not None
    assert now_s < second_s < first_s


def test_without_a_time_to_gather_nothing_gathers() -> None:
    pace = Pace(0)
    frames_apart(pace, 0.0, 1000)
    assert not pace.is_gathering
