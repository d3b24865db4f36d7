"""The processor time and memory of a process: what the kernel says of it, and an error once it has ended."""

import os
import subprocess
import time

import pytest

from benchmarks.processes import memory_mib, peak_mib, processor_s
from benchmarks.systems import BenchError


def test_processor_time_is_that_of_the_process() -> None:
    least_s, told_s, most_s = time.process_time(), processor_s(os.getpid()), time.process_time()
    assert least_s <= told_s <= most_s


def test_a_process_has_its_share_of_the_memory_that_is_resident_and_had_a_peak() -> None:
    me = os.getpid()
    assert 0 < memory_mib(me, "Pss") <= memory_mib(me)
    assert peak_mib(me) > 1


def test_a_process_that_has_ended_has_no_memory() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for measured in (memory_mib, peak_mib):
            with pytest.raises(BenchError, match="has ended"):
                measured(process.pid)
