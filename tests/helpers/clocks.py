"""Clocks of event loops that pauses of the machine do not move."""

import asyncio
from selectors import SelectorKey
from typing import Any, Final

import pytest

_QUIET_S: Final = 0.002


def wait_in_vain(patch: pytest.MonkeyPatch) -> None:
    """Let the time of the running loop pass only while nothing comes, and then at once to the next timer.

    So a time-out means that nothing came, however long the machine stood still, and tests of silence do not
    wait. It is for parts that all run on this loop: time does not wait for threads and other processes.
    """
    loop: Any = asyncio.get_running_loop()
    now_s, select = loop.time(), loop._selector.select  # noqa: SLF001 (there is no other way to wait in)

    def wait(timeout_s: float | None) -> list[tuple[SelectorKey, int]]:
        nonlocal now_s
        if timeout_s is None or timeout_s <= 0:
            return list(select(timeout_s))
        found: list[tuple[SelectorKey, int]] = select(_QUIET_S)
        now_s += 0.0 if found else timeout_s
        return found

    patch.setattr(loop._selector, "select", wait)  # noqa: SLF001
    patch.setattr(loop, "time", lambda: now_s)


def skip(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Put the clock of the running loop forward: what waits for a time that is longer has waited for it."""
    loop = asyncio.get_running_loop()
    time = loop.time
    patch.setattr(loop, "time", lambda: time() + seconds)


class StandingLoop(asyncio.SelectorEventLoop):
    """A loop whose `time()` is `now_s`, which a test moves: its process had no turn for a while."""

    now_s = 100.0

    def time(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float, turns: int = 10) -> None:
        """Let time pass at once, and then the loop have some turns."""
        self.now_s += seconds
        for _ in range(turns):
            self.run_until_complete(asyncio.sleep(0))
