"""The fleet on paper: its page shows what its command prints, and the arithmetic is that of a small fleet."""

from benchmarks.command import DOCS
from benchmarks.scale import Fleet, lines


def test_the_page_shows_what_the_command_prints() -> None:
    table = "\n".join(lines(Fleet(10_000, 1_000, 3, 1_000_000)))
    assert table in (DOCS / "pipeline.md").read_text()


def test_a_small_fleet() -> None:
    fleet = Fleet(gateways=20, plants=2, segments_a_gateway=3, frames_a_s=100)
    assert fleet.rows_a_day == 100 * 8 * 86_400
    assert fleet.sum_bytes(2) == 48  # 30 segments are one word
    assert fleet.sum_bytes(1) == 56  # 60 are two
    assert fleet.shuffle_bytes(2) == fleet.rows_a_day // 2 * 48
