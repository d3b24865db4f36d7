"""Which numbers stamps remember, for how long and how many, also as docs/failover.md promises it."""

from zlib import crc32

import pytest

from bridges.handover.stamps import CAP, Stamps
from bus.wire.frame import pack
from tests.helpers import ROOT

READING = pack(1, (7, 1), b"4.5")
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


@pytest.mark.parametrize(("turns", "following"), [((20.0,), 1), ((19.9, 39.8), 1), ((20.0, 40.0), 0)])
def test_a_number_is_free_at_the_second_turn_of_20_seconds(turns: tuple[float, ...], following: int) -> None:
    stamps = old_enough()
    assert stamps.next(READING) == FIRST
    for now in turns:
        stamps.advance(now)
    assert stamps.next(READING) == FIRST + following


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
