"""The files of the resident Spark: who finds it by them, and when it has ended."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.engine import keeper, server
from pipeline.engine.keeper import only_one
from tests.helpers import ROOT

KEEPER = """
import fcntl, json, os, signal, sys, time
from pathlib import Path

place = Path(sys.argv[1])
lock = (place / "keeper.lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX)
lock.write(str(os.getpid()))
lock.flush()

def end(*_):
    (place / "server.json").unlink(missing_ok=True)  # as a keeper does before its Java ends
    time.sleep(0.3)
    os._exit(0)

signal.signal(signal.SIGTERM, end)
(place / "server.json").write_text(json.dumps({"pid": os.getpid(), "port": 1, "secret": "s", "key": "k"}))
print("ready", flush=True)
while True:
    signal.pause()
"""


@contextmanager
def kept(place: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a keeper without a Spark, which takes away its file long before it ends."""
    words = [sys.executable, "-c", KEEPER, str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_a_server_that_was_stopped_has_ended(tmp_path: Path) -> None:
    with kept(tmp_path) as process:
        found = server.load(tmp_path)
        assert found is not None
        assert found.pid == process.pid
        assert server.stop(tmp_path)
        assert process.poll() == 0
    assert not server.stop(tmp_path)


@pytest.mark.parametrize("has_begun_to_end", [False, True], ids=["it starts", "it has begun to end"])
def test_a_server_without_its_file_is_ended_too(tmp_path: Path, has_begun_to_end: bool) -> None:
    with kept(tmp_path) as process:
        (tmp_path / server.SERVER).unlink()
        if has_begun_to_end:
            process.terminate()
        assert server.stop(tmp_path)
        assert process.poll() == 0


def test_a_keeper_holds_its_lock_until_its_process_ends(tmp_path: Path) -> None:
    """Else one that still ends would seem to have ended."""
    words = "import sys; from pathlib import Path; from pipeline.engine import keeper, server; "
    scene = "place = Path(sys.argv[1])\nwith keeper.only_one(place): pass\nprint(server.keeper_of(place))"
    done = subprocess.run(
        [sys.executable, "-c", f"{words}\n{scene}", str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == (tmp_path / server.LOCK).read_text(), done.stderr
    assert server.keeper_of(tmp_path) is None


def test_the_file_of_a_keeper_that_was_killed_is_nobodys(tmp_path: Path) -> None:
    with kept(tmp_path) as process:
        process.kill()
        process.wait()
    with (tmp_path / server.LOCK).open("ab") as lock:  # the next one has it, and writes its file later
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert (tmp_path / server.SERVER).exists()
        assert server.load(tmp_path) is None


def test_of_two_keepers_one_waits_as_long_as_the_other_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its command would say that Spark did not start: Java takes long beside other load."""
    now_s, starts_s = 0.0, 100.0

    def sleep(_: float) -> None:
        nonlocal now_s
        now_s += 1.0
        if now_s == starts_s:
            told = server.Server(pid=os.getpid(), port=1, secret="", key="")
            (tmp_path / server.SERVER).write_text(json.dumps(told._asdict()))

    monkeypatch.setattr(keeper, "time", SimpleNamespace(monotonic=lambda: now_s, sleep=sleep))
    with (tmp_path / server.LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with only_one(tmp_path) as alone:
            assert (alone, now_s) == (False, starts_s)


def test_a_keeper_ends_when_the_directory_of_its_file_goes(tmp_path: Path) -> None:
    jvm: Any = SimpleNamespace(process=SimpleNamespace(poll=lambda: None))  # Java runs on
    with (tmp_path / server.USE).open("ab") as use:
        keeper.watch(jvm, None, use, tmp_path / server.SERVER, "no.rehearsal")
