"""A Sail that commands start: when they use it, and that it ends with them."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.helpers import ROOT
from tests.helpers.peers import wait

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytest.importorskip("pysail")

from pipeline.engine import jars, sail, session
from pipeline.engine.choice import SAIL, Where
from pipeline.engine.sail import Sail, size_bytes
from pipeline.errors import PipelineError
from pipeline.input import sample

LIMIT_S = 100.0
pytestmark = pytest.mark.timeout(200)


@pytest.mark.parametrize(("has_spark", "extra"), [(False, "sail"), (True, "engines")])
def test_sail_that_is_not_there_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, has_spark: bool, extra: str
) -> None:
    """Beside Spark its client would be installed over pyspark."""
    monkeypatch.setattr(sail, "find_spec", lambda name: None)
    monkeypatch.setattr(jars, "installed", lambda: has_spark)
    with pytest.raises(PipelineError, match=re.escape(f"pip install 'buscoupler[{extra}]'")):
        session.start(Where(SAIL))


@pytest.mark.parametrize(("text", "size"), [("512m", 512 << 20), ("4g", 4 << 30), ("2G", 2 << 30), ("9", 9)])
def test_memory_is_given_as_to_java(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "g", "4x", "-1g", "1.5g"])
def test_memory_that_is_no_size(text: str) -> None:
    with pytest.raises(PipelineError, match="give a size such as"):
        Sail(text)


def test_it_ends_with_who_started_it_and_leaves_nothing(tmp_path: Path) -> None:
    one = "from pipeline.engine.sail import Sail; s = Sail('1g'); print(s.connect(), flush=True); input()"
    command = subprocess.Popen(
        [sys.executable, "-c", one], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert command.stdout
    url = command.stdout.readline()
    assert list(tmp_path.iterdir())
    command.kill()
    command.communicate()
    wait(lambda: not listens(url) and not list(tmp_path.iterdir()), LIMIT_S, "the server's end")
    assert not listens(url)
    assert not list(tmp_path.iterdir())


def listens(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


def test_closed_it_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Sail("1g")
    url = made.connect()
    assert list(tmp_path.iterdir())
    made.close()
    made.close()
    assert not listens(url)
    assert not list(tmp_path.iterdir())


def test_what_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sail, "environment", lambda *_: {**os.environ, "SAIL_EXECUTION__BATCH_SIZE": "many"})
    made = Sail("1g")
    try:
        with pytest.raises(PipelineError, match=r"Sail did not start: .*many"):
            made.connect()
    finally:
        made.close()


def test_ctrl_c_ends_command_and_sail(tmp_path: Path) -> None:
    sample.write(tmp_path)
    words = [sys.executable, "-m", "buscoupler", "audit", str(tmp_path), "--engine", "sail"]
    command = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert command.stderr
    assert "starting Sail" in command.stderr.readline()
    assert "files" in command.stderr.readline()
    command.send_signal(signal.SIGINT)
    out, said = command.communicate(timeout=LIMIT_S)
    assert (command.returncode, out) == (-signal.SIGINT, "")
    assert "Traceback" not in said


KILLED: Final = """
import sys
from appliance.commandline.cli import main
from pipeline.analysis.audit import findings
from pipeline.engine import jars, sail

made, connect, work = [], sail.Sail.connect, findings.audit
sail.Sail.connect = lambda self: made.append(self) or connect(self)
findings.audit = lambda *words, **more: (made[0].process.kill(), work(*words, **more))
sys.exit(main(["audit", sys.argv[1], "--engine", "sail", "-q"]))
"""


def test_sail_that_is_killed_is_one_clear_line_at_once(tmp_path: Path) -> None:
    sample.write(tmp_path)
    words = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("buscoupler: Sail has been killed")
