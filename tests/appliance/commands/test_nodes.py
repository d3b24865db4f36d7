"""The commands `service` and `client`, with a catalog that is a command too."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen

from tests.helpers import ROOT

COMMAND = (sys.executable, "-m", "buscoupler")


@contextmanager
def running(*words: str) -> Iterator[Popen[str]]:
    with Popen([*COMMAND, *words], stdout=PIPE, stderr=PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.terminate()


def said(process: Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def client(*words: str) -> "CompletedProcess[str]":
    done = subprocess.run([*COMMAND, "client", *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "Traceback" not in done.stderr
    return done


def test_a_service_is_listed_asked_heard_and_gone(tmp_path: Path) -> None:
    with running("catalog", "tcp://127.0.0.1:0", "--records", "none", "--no-beacon") as catalog:
        url = said(catalog).split()[-1]
        at = ("--catalog", url)
        assert client(*at).stdout == ""
        with running("service", "Rohan", *at, "--publish", "0.02", "--port", "0") as service:
            where = said(service)
            assert where.startswith("service Rohan on tcp://127.0.0.1:")
            assert said(service) == "Rohan is listed"
            assert client(*at).stdout.startswith("Rohan  router=127.0.0.1:")
            assert '"function": "echo, time"' in client(*at, "--json", "Rohan").stdout
            assert client(*at, "Rohan", "echo", "a", "b").stdout == "a\nb\n"
            assert client(*at, "Rohan", "time").stdout.startswith("20")
            heard = client(*at, "Rohan", "--subscribe", "tick", "--count", "2").stdout.split()
            assert heard[0] == heard[2] == "tick"
            assert int(heard[3]) == int(heard[1]) + 1
            refused = client(*at, "Rohan", "dance")
            assert (refused.returncode, refused.stderr) == (
                1,
                "buscoupler: Rohan refused: unknown word\n",
            )
            service.terminate()
            assert service.wait() == 0
        gone = client(*at, "Rohan")
        assert (gone.returncode, gone.stderr) == (1, "buscoupler: Rohan is not listed\n")


def test_a_catalog_that_is_not_there_is_one_line() -> None:
    done = client("--catalog", "tcp://127.0.0.1:1", "--timeout", "0.2")
    assert done.returncode == 1
    assert done.stderr == "buscoupler: the catalog gave no answer within 0.2 s\n"
