"""What the tunnel in the machine counts, from the logs of candump."""

from pathlib import Path

import pytest

from benchmarks.can_machine import Machine, account
from benchmarks.tunnel import Flow


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
    assert flow.rate == 1.0
    assert flow.words([]) == "6 sent, 1 lost, 0 unheard, 1 doubled, 1 out of order, 1 echoed"
    (lost_s,) = flow.lost()
    assert flow.words([(lost_s - 0.1, lost_s + 0.1)]).startswith("6 sent, 0 lost, 1 unheard")


class Full(Machine):
    """A machine whose processor does 1500 frames a second; `asked` has the rates that were tried."""

    asked: list[float]

    async def load(self, rate: float, seconds: float) -> tuple[Flow, Flow]:
        self.asked.append(rate)
        flow, back = Flow(0x123), Flow(0x523)
        for number in range(int(rate)):
            flow.say(number / min(rate, 1500.0))
            flow.take(number)
        return flow, back


async def test_no_rate_is_looked_for_beyond_what_the_processor_does(tmp_path: Path) -> None:
    machine = Full(tmp_path, "vcan0", "vcan1")
    machine.asked = list[float]()
    assert await machine.kept(20000) == pytest.approx(1500)
    assert machine.asked == [50, 100, 200, 400, 800, 1600, 3200]
