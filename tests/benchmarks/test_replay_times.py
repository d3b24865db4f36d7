"""The account of a replay: what candump wrote down beside the log."""

from pathlib import Path

from benchmarks.replay_times import heard, late_us, made
from tests.kernel.guest.logs import plan_of


def test_a_start_that_is_late_counts_for_nothing(tmp_path: Path) -> None:
    log = made(tmp_path / "log", 500.0, 0.1)
    assert heard(tmp_path / "log") == log
    played = [(at + 5_000 + 300 * (number == 7), frame) for number, (at, frame) in enumerate(log)]
    assert late_us(played, log) == [0] * (len(log) - 1) + [300]


def test_a_plan_has_each_frame_at_its_time(tmp_path: Path) -> None:
    log = made(tmp_path / "log", 500.0, 0.1)
    plan = plan_of(str(tmp_path / "log"), "can:vcan0?protocol=raw")
    assert [at // 1000 for at, _ in plan.timed()] == [at for at, _ in log]
