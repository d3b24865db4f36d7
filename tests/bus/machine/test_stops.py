"""Tests of stops: what of a lateness the kernel's own counts explain."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bus.machine.stops import FAULT_S, Turns, stopped_s, turns

TIMES = 5
PROGRAM = """
import sys, time
from bus.machine.stops import stopped_s, turns

def late(work):
    before, began = turns(), time.monotonic()
    work()
    wall = time.monotonic() - began
    now = turns()
    print(wall, stopped_s(wall, before, now), now.faults - before.faults, flush=True)

def busy():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass

def wait():
    print('waits', flush=True)
    sys.stdin.readline()

for _ in range(TIMES):
    late(busy)
late(wait)
"""


@pytest.mark.parametrize(
    ("before", "now", "seconds"),
    [
        (Turns(5.0, 1), Turns(5.2, 1), 0.8),
        (Turns(5.0, 1), Turns(6.5, 1), 0.0),
        (Turns(5.0, 1), Turns(5.2, 3), 0.7),
        (Turns(5.0, 1), Turns(5.2, 21), 0.0),
        (None, Turns(5.2, 1), 0.0),
        (Turns(5.0, 1), None, 0.0),
    ],
)
def test_what_turns_do_not_explain_is_a_stop(before: Turns | None, now: Turns | None, seconds: float) -> None:
    assert stopped_s(1.0, before, now) == pytest.approx(seconds)


def test_the_kernel_tells_a_busy_process_from_one_that_is_stopped() -> None:
    if turns() is None:
        pytest.skip("this kernel does not count turns")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("TIMES", str(TIMES))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        looks = [list(map(float, process.stdout.readline().split())) for _ in range(TIMES)]
        assert min(busy_s / wall_s for wall_s, busy_s, _ in looks) < 1 / 4  # the machine may stop in some
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        began_s = time.monotonic()
        subprocess.run([sys.executable, "-c", ""], check=True)  # another program works meanwhile
        took_s = time.monotonic() - began_s
        process.stdin.write("go\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        _, away_s, faults = map(float, process.stdout.readline().split())
    assert away_s > 0.9 * took_s - FAULT_S * faults
