"""Tests of real-time priority: who has it, and that a greedy loop gives it away and gets it back."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bus.machine.real_time import RealTime

PROGRAM = """
import asyncio, os, subprocess, sys, threading, time
from bus.machine import real_time
from bus.machine.real_time import RealTime, is_real_time

OWN = 'import os; print(os.sched_getscheduler(0))'

async def main():
    real_time.REST_S = 0.01
    priority = RealTime(asyncio.get_running_loop())
    if not is_real_time():
        return print('refused')
    print('real-time')
    print('child', subprocess.run([sys.executable, '-c', OWN], capture_output=True, text=True).stdout.strip())
    found = []
    thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK))
    thread.start(), thread.join()
    print('thread', *found)
    for _ in range(2):
        while is_real_time():  # it works without a pause
            pass
        print('ordinary')
        while not is_real_time():
            await asyncio.sleep(0.005)
        print('real-time')
    priority.close()
    print('closed', is_real_time())

asyncio.run(main())
"""


@pytest.fixture
def restored() -> Iterator[None]:
    """Put back what `RealTime` changes in the process of the tests."""
    soft = resource.getrlimit(resource.RLIMIT_RTTIME)
    before = signal.getsignal(signal.SIGXCPU)
    yield
    resource.setrlimit(resource.RLIMIT_RTTIME, soft)
    assert signal.getsignal(signal.SIGXCPU) == before


def test_a_greedy_loop_gives_its_priority_away_and_gets_it_back() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if done.stdout == "refused\n":
        pytest.skip("this user may not have real-time priority")
    words = ["real-time", f"child {os.SCHED_OTHER}", f"thread {os.SCHED_OTHER}"]
    assert done.stdout.splitlines() == [*words, *2 * ["ordinary", "real-time"], "closed False"]


def test_a_system_that_refuses_is_told_once_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, restored: None
) -> None:
    def refuse(*rest: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    async def main() -> None:
        priority = RealTime(asyncio.get_running_loop())
        monkeypatch.undo()
        priority.close()

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    asyncio.run(main())
    (record,) = caplog.records
    assert "LimitRTPRIO=1" in record.message
    assert "Operation not permitted" in record.message


def test_a_process_has_no_real_time_priority_by_itself() -> None:
    words = [sys.executable, "-c", "from bus.machine.real_time import is_real_time; print(is_real_time())"]
    policy = os.sched_getscheduler(0)
    assert subprocess.run(words, capture_output=True, text=True).stdout == f"{policy in (1, 2)}\n"
