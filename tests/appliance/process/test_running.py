"""The loop of a command: a signal at any moment ends it in order, and nothing else comes of it."""

import asyncio
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import pytest

from appliance.process.interrupts import STOPS, Stopped, behind, handled
from appliance.process.running import run_loop
from tests.helpers import ROOT

ALL = [*STOPS]


class Work:
    """A coroutine that opens something, looks up a name on a thread, has a second task, and closes."""

    def __init__(self) -> None:
        self.is_begun = self.is_closed = False

    async def run(self) -> str:
        self.is_begun = True
        forever = asyncio.create_task(asyncio.Event().wait())
        try:
            await asyncio.get_running_loop().run_in_executor(None, int)
            await asyncio.sleep(0)
            return "done"
        finally:
            self.is_closed = True
            forever.cancel()
            with suppress(asyncio.CancelledError):
                await forever


def at_call(calls: int, number: int, run: Callable[[], object]) -> int:
    """Run a function, with a signal at the so-manieth call within it. Return how many were left."""
    left = calls

    def count(_frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event == "call":
            left -= 1
            if left == 0:
                signal.raise_signal(number)

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return left


@pytest.mark.parametrize("number", ALL)
def test_a_signal_at_any_call_ends_it_in_order(number: int) -> None:
    calls, outcomes = 0, set[str]()
    with handled(lambda *_: None, ALL):  # those before and behind the loop go here
        while True:
            calls += 1
            work = Work()
            try:
                left = at_call(calls, number, lambda work=work: run_loop(work.run()))  # type: ignore[misc]
                outcomes.add("done")
            except Stopped as stop:
                left = 0
                outcomes.add(f"stopped by {stop.number}")
            assert work.is_closed == work.is_begun
            if left > 0:
                break
    assert outcomes == {"done", f"stopped by {number:d}"}
    assert calls > 100


def test_a_second_signal_does_not_wait_for_what_closes() -> None:
    async def stubborn() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(3600)
        finally:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(3600)

    with pytest.raises(Stopped) as stop:
        run_loop(stubborn())
    assert stop.value.number == signal.SIGTERM


def test_handlers_are_as_before_and_an_ignored_signal_stays_ignored() -> None:
    async def hang_up() -> str:
        signal.raise_signal(signal.SIGHUP)
        await asyncio.sleep(0)
        return "went on"

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_loop(hang_up()) == "went on"
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_cancellation_of_its_own_is_no_signal() -> None:
    async def gives_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_loop(gives_up())


def test_an_interrupt_is_found_behind_another_error() -> None:
    try:
        try:
            raise Stopped(signal.SIGTERM)
        except KeyboardInterrupt as stop:
            raise RuntimeError("Error calling __set_name__") from stop
    except RuntimeError as error:
        found = behind(error)
    assert isinstance(found, Stopped)
    assert behind(RuntimeError()) is None


def test_commands_have_one_loop_of_this_kind() -> None:
    made = re.compile(r"asyncio\.(run|Runner)\(")
    files = [
        file for room in ("appliance", "devices", "bridges", "bus") for file in (ROOT / room).rglob("*.py")
    ]
    found = {str(file.relative_to(ROOT)) for file in files if made.search(file.read_text())}
    assert found == {"appliance/process/running.py", "bridges/simulate/loop.py"}
