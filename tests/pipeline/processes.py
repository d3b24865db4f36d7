"""Commands as processes: what they say, and how they end."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import psutil

from pipeline.engine.choice import SAIL
from tests.helpers import ROOT, alone
from tests.pipeline.every_job import Answers
from tests.rigs.planted import Plan

WRITER: Final = "devices.tap.writer"
COMMAND: Final = (sys.executable, "-m", "buscoupler")
PLAN: Final = Plan(rows=18_000, lost=0.01, doubled=0.006, echoed=0.004)
"""Of the capture on which engines are compared."""


def run(*words: str, python: str = sys.executable, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return what a process says, which knows nothing of the session that runs here. `more` is added to its
    environment."""
    done = subprocess.run(
        [python, *words], capture_output=True, text=True, timeout=600, cwd=ROOT, env=alone() | dict(more)
    )
    assert done.stdout, done.stderr
    return done.stdout


def tables(*words: str, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, object]:
    """Return the tables that a command prints as JSON, without the facts about the run."""
    found: dict[str, object] = json.loads(run(*words, more=more))
    found.pop("run")
    return found


_IN_TURN: Final = """
import contextlib, io, json, sys, tempfile
from appliance.commandline.cli import main

for words in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile("w+") as said:  # which has a number, as a terminal has
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(said):
            status = main(words)
        said.seek(0)
        print(json.dumps([status, out.getvalue(), said.read()]))
"""


class Done(NamedTuple):
    """A command that has ended: its exit status, its answer and what it said besides."""

    status: int
    out: str
    said: str

    @property
    def tables(self) -> dict[str, Any]:
        """The tables that it printed as JSON, without the facts about the run; none if it printed none."""
        found: dict[str, Any] = json.loads(self.out or "{}")
        found.pop("run", None)
        return found


def in_turn(*commands: Sequence[str], more: Mapping[str, str] = MappingProxyType({})) -> list[Done]:
    """Run commands one after the other in one process: it starts once."""
    return [
        Done(*json.loads(line)) for line in run("-c", _IN_TURN, json.dumps(commands), more=more).splitlines()
    ]


def there(directory: Path, *where: str, python: str = sys.executable) -> Answers:
    """Return the answers of all jobs to a capture, of a process whose options say `where` it works."""
    words = ["-m", "tests.pipeline.every_job", str(directory), *where]
    found: Answers = json.loads(run(*words, python=python, more={"PYTHONPATH": str(ROOT)}))
    return found


def on_sail(directory: Path, python: str = sys.executable) -> Answers:
    return there(directory, "--engine", SAIL, python=python)


def written(directory: Path) -> Path:
    """Wait until no tap writes below a directory: on a busy machine a tap's writer outlives its gateway, and
    may even begin after its end."""
    writers = [one for one in psutil.process_iter(["cmdline"]) if writes(one, directory)]
    _, left = psutil.wait_procs(writers, 120)
    assert not left
    return directory


def writes(process: psutil.Process, directory: Path) -> bool:
    words = process.info["cmdline"] or ()
    return WRITER in words and any(str(directory) in word for word in words)


def audited(directory: Path, *where: str) -> dict[str, Any]:
    """Return the tables of an audit, with its exit `status`, of what has been written."""
    written(directory)
    words = [*COMMAND, "audit", str(directory), "--json", "--quiet", *where]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=alone())
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"status": done.returncode}


def stop(process: subprocess.Popen[str]) -> None:
    """Interrupt a process, if it still runs, and wait for its end."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
