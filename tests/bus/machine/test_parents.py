"""Children that end with their parent, also if it is killed: real processes."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.helpers import ROOT

_CHILD = [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"]
_BY_POPEN = f"""
import subprocess, sys
from bus.machine.parents import ending_with_us
subprocess.Popen({_CHILD}, preexec_fn=ending_with_us(), start_new_session=True)
sys.stdin.read()
"""
_BY_POOL = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import getpid
import signal
from bus.machine.parents import end_with
with ProcessPoolExecutor(1, get_context("spawn"), end_with, (getpid(),)) as pool:
    pool.submit(int).result()
    print(flush=True)
    pool.submit(signal.pause).result()
"""
"""Programs that start a child, which prints an empty line, and read until they are killed."""


@pytest.fixture
def killed() -> Iterator[Callable[[str], list[int]]]:
    """A function that runs a program until its child speaks, kills it, and gives descriptors of the children
    that it had: each can be read once that one has ended."""
    opened = list[int]()

    def run(program: str) -> list[int]:
        words, environment = [sys.executable, "-c", program], os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(words, stdin=PIPE, stdout=PIPE, env=environment) as it:
            assert it.stdout
            assert it.stdout.readline() == b"\n"
            children = Path(f"/proc/{it.pid}/task/{it.pid}/children").read_text().split()
            opened.extend(os.pidfd_open(int(child)) for child in children)
            it.kill()
        return opened

    yield run
    for descriptor in opened:
        os.close(descriptor)


@pytest.mark.parametrize("program", [_BY_POPEN, _BY_POOL], ids=["a program", "a worker of a pool"])
def test_a_child_ends_with_a_parent_that_is_killed(killed: Callable[[str], list[int]], program: str) -> None:
    children = killed(program)
    assert children
    for child in children:
        assert select.select([child], [], [], 30.0)[0]


def test_one_whose_parent_ended_before_ends_at_once() -> None:
    program = "from bus.machine.parents import end_with; end_with(0); print('goes on')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


STARTS = re.compile(r"(Popen|create_subprocess_exec|create_subprocess_shell|ProcessPoolExecutor)\(")
ENDS = re.compile(r"stdin=subprocess\.PIPE|ending_with_us\(\)|end_with,")
GO_ON = {
    "appliance/alarms/outlets/command.py": "a command of the user's delivers its notice",
    "appliance/rollout/station.py": "a guard goes back for a gateway that is gone",
    "pipeline/engine/resident.py": "a keeper serves the commands that follow",
}
"""The modules that start what is to outlive them, and why."""


def test_what_a_module_starts_reads_its_pipe_or_ends_with_it_but_for_what_is_to_go_on() -> None:
    packages = ("appliance", "bridges", "bus", "buscoupler", "capture", "devices", "pipeline", "topologies")
    texts = {path: path.read_text() for package in packages for path in (ROOT / package).rglob("*.py")}
    left = {path for path, text in texts.items() if STARTS.search(text) and not ENDS.search(text)}
    assert {str(path.relative_to(ROOT)) for path in left} == GO_ON.keys()
