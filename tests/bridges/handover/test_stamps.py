"""Which numbers stamps remember, for how long and how many, also as docs/failover.md promises it."""

from zlib import crc32

import pytest

from bridges.handover.stamps import CAP, LIFE_S, Stamps
from bridges.rules import Seen
from bus.wire.frame import pack
from tests.helpers import ROOT

READING = pack(1, (7, 1), b"4.5")
OTHER = pack(1, (7, 1), b"4.6")
FIRST = crc32(READING)


def old_enough() -> Stamps:
    """Return stamps that have listened for so long that nobody else's may be remembered, at 0 s."""
    stamps = Stamps()
    stamps.advance(-20.0)
    stamps.advance(0.0)
    return stamps


def test_a_number_is_in_use_however_often_time_passes_meanwhile() -> None:
    stamps = old_enough()
    for step in range(50):
        stamps.advance(step * 0.1)
        assert stamps.next(READING) == FIRST + step


@pytest.mark.parametrize("begun_s", [-100.0, -21.0, -20.0, -15.0])
@pytest.mark.parametrize(
    ("spacing_s", "following"), [(LIFE_S - 0.1, 1), (LIFE_S + 0.1, 0), (20.0, 0), (50.0, 0)]
)
def test_a_number_is_free_a_certain_time_after_it_came_last_whenever_one_has_begun(
    begun_s: float, spacing_s: float, following: int
) -> None:
    stamps = Stamps()
    for now in (begun_s, 0.0):
        stamps.advance(now)
    assert stamps.take_all([READING, OTHER]) == [FIRST, crc32(OTHER)]
    stamps.advance(spacing_s)
    assert stamps.next(OTHER) == crc32(OTHER) + following
    assert stamps.take_all([READING]) == [FIRST + following]


def test_as_many_numbers_are_remembered_as_the_bound_allows() -> None:
    stamps, most = Stamps(cap=100), 0
    stamps.advance(0.0)
    for number in range(300):
        stamps.advance(11.0)
        stamps.next(pack(1, (number,)))
        most = max(most, len(stamps))
    assert most == 100


def test_the_bound_is_that_of_the_page() -> None:
    assert f"remembers at most {CAP:,} numbers" in (ROOT / "docs/failover.md").read_text()


@pytest.mark.parametrize("spacing_s", [0.001, 0.1, 1, 2, 4.9, 5, 7, 9.9, 10, 12, 14.2, 14.4, 20, 30, 41])
def test_equal_readings_are_never_taken_for_duplicates_at_any_spacing(spacing_s: float) -> None:
    """A receiver that remembers keys as `Seen` does lets exactly the sent messages through."""
    stamps, seen, now = Stamps(), Seen(), 1000.0
    stamps.advance(now - 11)
    for _ in range(60):
        now += spacing_s
        stamps.advance(now)
        seen.advance(now)
        number = stamps.next(READING)
        assert number is not None
        assert seen.add(number), f"taken for a duplicate at {now}"


@pytest.mark.parametrize("spacing_s", [0.01, 1, 3, 6, 9])
def test_one_who_takes_over_uses_no_number_that_may_be_remembered(spacing_s: float) -> None:
    first, second, seen, now = Stamps(), Stamps(), Seen(), 1000.0
    first.advance(now - 11)
    for turn in range(40):
        now += spacing_s
        for stamps in (first, second):
            stamps.advance(now)
        seen.advance(now)
        number = (first if turn < 3 else second).next(READING)
        if turn == 2:
            second.advance(now)  # it starts now, and has heard nothing before
        assert number is None or seen.add(number)


def test_two_who_hear_alike_stamp_alike_and_one_who_missed_some_catches_up() -> None:
    one, two = Stamps(), Stamps()
    for stamps in (one, two):
        stamps.advance(0.0)
        stamps.advance(11.0)
    frames = [READING, OTHER, READING, READING, OTHER]
    assert [one.next(frame) for frame in frames] == [two.next(frame) for frame in frames]
    last = [one.next(READING) for _ in range(3)][-1]
    assert last is not None
    two.heard(READING, last)
    assert two.next(READING) == one.next(READING)
    two.heard(READING, 12345)  # it is no number for this content, and is ignored
    assert two.next(READING) == one.next(READING)


def test_contents_whose_numbers_meet_get_different_ones() -> None:
    stamps = Stamps()
    stamps.advance(0.0)
    stamps.advance(11.0)
    first = stamps.next(READING)
    assert first is not None
    stamps.heard(OTHER, 0)
    stamps._use(first + 1, first + 1)  # noqa: SLF001 - another content's number, which no two short frames hit
    assert stamps.next(READING) == first + 2


def test_for_ten_seconds_it_is_not_sure_of_contents_that_nobody_stamped() -> None:
    stamps = Stamps()
    stamps.advance(0.0)
    stamps.heard(OTHER, crc32(OTHER))
    assert stamps.next(OTHER) == crc32(OTHER) + 1
    stamps.advance(9.9)
    assert stamps.next(READING) is None
    stamps.advance(10.0)
    assert stamps.next(READING) == crc32(READING)


@pytest.mark.parametrize(
    ("ahead", "goes_on"), [(0, True), ((1 << 20) - 1, True), (1 << 20, False), (-1, False)]
)
def test_a_number_far_from_those_of_its_content_is_ignored(ahead: int, goes_on: bool) -> None:
    stamps = Stamps()
    stamps.advance(0.0)
    stamps.advance(11.0)
    stamps.heard(READING, crc32(READING) + ahead)
    assert stamps.next(READING) == crc32(READING) + (ahead + 1 if goes_on else 0)


def test_stamps_are_bounded() -> None:
    stamps = Stamps(cap=100)
    stamps.advance(0.0)
    for number in range(1000):
        stamps.advance(11.0)
        stamps.next(pack(1, (number,)))
        assert len(stamps) <= 100
