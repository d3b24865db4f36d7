"""The commands `service` and `client`, with a catalog that is a command too."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen
from typing import Any, ClassVar

import pytest

from appliance.commandline import cli
from appliance.commands.service import _opened, _tell
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.service import Service
from tests.helpers import ROOT
from tests.helpers.ports import free_port

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


def done(*words: str) -> "CompletedProcess[str]":
    process = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "Traceback" not in process.stderr
    return process


def client(*words: str) -> "CompletedProcess[str]":
    return done("client", *words)


def monitor(*words: str) -> "CompletedProcess[str]":
    return done("monitor", *words)


async def test_a_service_waits_for_an_address_that_is_not_there_yet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As all that listen do: after a power failure a process is often up before the addresses are."""
    stop: Any = asyncio.Event()
    service = Service("Rohan", catalog="tcp://127.0.0.1:9", host="192.0.2.1", publishes=True, port=0)
    opening = asyncio.ensure_future(_opened(service, stop))
    told = ""
    while "will go on trying" not in told:
        await asyncio.sleep(0)
        told += capsys.readouterr().err
        assert not opening.done()
    assert "192.0.2.1" in told
    stop.set()
    assert await opening is False
    port = free_port()
    taken = socket.create_server(("127.0.0.1", port))
    stop.clear()
    there = Service("Rohan", catalog="tcp://127.0.0.1:9", port=port)
    assert await _opened(there, stop) is True  # at the next port
    await there.close()
    taken.close()


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
            assert client(*at, "Rohan", "echo", "a", "--json").stdout == '{"data": "a"}\n'
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


AT = ("--catalog", "tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["client", *AT, "Rohan", "pong"], "'pong' cannot be the word of a request"),
        (["client", *AT, "Rohan", "é"], "'é' cannot be the word of a request"),
        (["client", *AT, "Rohan", "\udcff"], "cannot be the word of a request"),
        (["client", *AT, "--subscribe", "tick"], "--subscribe is of a NAME"),
        (["client", *AT, "Rohan", "echo", "--subscribe", "tick"], "--subscribe is of a NAME"),
        (["client", *AT, "Rohan", "echo", "--count", "2"], "--count is of --subscribe"),
        (["client", *AT, "Rohan", "--subscribe", "tick", "--count", "0"], "not a whole number above 0"),
        (["monitor", *AT, "--interface", "pub"], "--interface is of a NAME"),
        (["monitor", *AT, "Rohan", "--of-catalog"], "write NAME or --of-catalog"),
        (["service", *AT, "Rohan", "--port", "99999"], "'99999' is not a port"),
        (["service", *AT, "Rohan", "--port", "-5"], "'-5' is not a port"),
    ],
)
def test_what_no_node_can_do_is_wrong_use_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


class _Denied(Service):
    """A service whose catalog denies it, and lists it in the end."""

    answers: ClassVar = ["name taken", "name taken", "services full", "services full", ""]

    async def listed(self) -> None:
        if why := self.answers.pop(0):
            raise NodeError(why)

    async def changed(self) -> None:
        """Return at once: something has changed."""


def test_a_denial_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(_tell(_Denied("Rohan")))
    told = capsys.readouterr()
    assert told.err.splitlines() == [f"buscoupler service: {why}" for why in ("name taken", "services full")]
    assert told.out == "Rohan is listed\n"


def test_a_catalog_that_is_not_there_is_one_line() -> None:
    found = client("--catalog", "tcp://127.0.0.1:1", "--timeout", "0.2")
    assert found.returncode == 1
    assert found.stderr == "buscoupler: the catalog gave no answer within 0.2 s: Connection refused\n"


def until_alive(text: str, *at: str) -> str:
    """Return what is shown once it has a text: a service that has no turn for two beats is suspect."""
    while text not in (shown := monitor(*at).stdout):
        pass
    return shown


def test_the_life_of_a_service_and_what_passes_at_its_sockets_are_shown() -> None:
    with running("catalog", "tcp://127.0.0.1:0", "--records", "none", "--no-beacon") as catalog:
        at = ("--catalog", said(catalog).split()[-1])
        with running("service", "Rohan", *at, "--publish", "0.02", "--port", "0") as service:
            said(service)
            assert said(service) == "Rohan is listed"
            lines = until_alive(" alive ", *at).splitlines()
            assert lines[0].split() == ["service", "state", "silent", "for", "host"]
            assert lines[1].endswith("127.0.0.1  beats every 1 s")
            until_alive('"name": "Rohan", "state": "alive"', *at, "--json", "--count", "1")
            passed = monitor(*at, "Rohan", "--interface", "pub", "--count", "2").stdout.splitlines()
            assert [line.split()[1:5] for line in passed] == [["out", "-", "tick", "|"]] * 2
            one = json.loads(monitor(*at, "Rohan", "--interface", "pub", "--count", "1", "--json").stdout)
            assert (one["direction"], bytes.fromhex(one["frames"][0])) == ("out", b"tick")
        gone = monitor(*at, "Rohan")
        assert (gone.returncode, gone.stderr) == (1, "buscoupler: Rohan is not listed\n")
