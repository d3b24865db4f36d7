"""What the tunnel in the machine counts, from the logs of candump."""

from pathlib import Path

from benchmarks.can_machine import account


def log(path: Path, *frames: tuple[int, int]) -> Path:
    """Write a log of frames: the identifier and the number of each."""
    lines = (
        f"({1000 + at}.5) vcan0 {identifier:03X}#{number.to_bytes(8, 'little').hex().upper()}\n"
        for at, (identifier, number) in enumerate(frames)
    )
    path.write_text("".join(lines))
    return path


def test_lost_doubled_late_and_echoed_frames_are_told_apart(tmp_path: Path) -> None:
    sent = log(tmp_path / "a", *((0x123, number) for number in range(6)), (0x523, 0), (0x123, 2))
    heard = log(tmp_path / "b", *((0x123, number) for number in (0, 2, 1, 3, 3, 5)), (0x523, 0))
    flow = account(sent, heard, 0x123)
    assert flow.words([]) == "6 sent, 1 lost, 0 unheard, 1 doubled, 1 out of order, 1 echoed"
    (lost_s,) = flow.lost()
    assert flow.words([(lost_s - 0.1, lost_s + 0.1)]).startswith("6 sent, 0 lost, 1 unheard")
