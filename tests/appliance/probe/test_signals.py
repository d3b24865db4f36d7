"""`send` and `recv` as processes: signals, and readers that close the pipe."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.probe.words import line as line_of
from bus.names import Names
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import BUSCOUPLER, parsed
from tests.helpers.peers import SpPeer

FRIDGE = Pattern("fridge", "temp")
READING = pack(PUB, FRIDGE, b"21.5")


Process = subprocess.Popen[str]


def stopped_by(number: int, words: list[str], ready: Callable[[Process], object]) -> tuple[int, str]:
    pipe = subprocess.PIPE
    with Process([*BUSCOUPLER, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        ready(process)
        process.send_signal(number)
        try:
            process.wait(20)  # its standard input is still open
        finally:
            process.kill()
        assert process.stderr is not None
        return process.returncode, process.stderr.read()


def is_listening(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    assert "listening on" in process.stderr.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("words", "normal"),
    [
        (["recv"], True),
        (["recv", "--count", "5"], False),
        (["recv", "--timeout", "60"], False),
        (["send", "--file", "-"], False),
        (["traffic"], False),
    ],
    ids=str,
)
def test_signals_end_it_quietly_and_the_status_tells_if_it_had_not_finished(
    number: int, words: list[str], normal: bool, socket_path: Path
) -> None:
    name, *more = words
    pattern = ["fridge"] if name == "send" else []
    command_line = [name, f"ipc://{socket_path}", *pattern, "--listen", *more]
    assert stopped_by(number, command_line, is_listening) == (0 if normal else 128 + number, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_send_that_waits_for_its_next_line(number: int, socket_path: Path) -> None:
    def one_line_sent(process: subprocess.Popen[str]) -> None:
        is_listening(process)
        peer = SpPeer(f"ipc://{socket_path}")
        peer.greeting()
        assert process.stdin is not None
        process.stdin.write("21.5\n")
        process.stdin.flush()
        assert peer.receive() == READING
        peers.append(peer)

    peers: list[SpPeer] = []
    words = ["send", f"ipc://{socket_path}", "fridge/temp", "--listen", "--file", "-"]
    assert stopped_by(number, words, one_line_sent) == (128 + number, "")
    peers[0].close()


@pytest.mark.parametrize(("limit", "status"), [([], 0), (["--count", "1000000"], 130)])
def test_traffic_that_has_no_end_of_its_own_ends_well(
    limit: list[str], status: int, socket_path: Path
) -> None:
    def heard(process: subprocess.Popen[str]) -> None:
        is_listening(process)
        peer = SpPeer(f"ipc://{socket_path}")
        peer.greeting()
        assert peer.receive()
        peers.append(peer)

    peers: list[SpPeer] = []
    assert (
        stopped_by(signal.SIGINT, ["traffic", f"ipc://{socket_path}", "--listen", *limit], heard)[0] == status
    )
    peers[0].close()


def test_recv_ends_in_one_line_if_its_reader_closes(socket_path: Path) -> None:
    command_line = [*BUSCOUPLER, "recv", f"ipc://{socket_path}", "--listen"]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        is_listening(process)
        peer = SpPeer(f"ipc://{socket_path}")
        peer.greeting()
        peer.send(READING)
        assert process.stdout is not None
        assert "21.5" in process.stdout.readline()
        process.stdout.close()
        peer.send(READING)
        assert process.stderr is not None
        assert process.stderr.read() == "buscoupler: nobody reads the output any more\n"
        assert process.wait(timeout=20) == 1
        peer.close()


def test_a_line_shows_the_hour_and_the_microsecond() -> None:
    assert re.match(r"\d\d:\d\d:\d\d\.250000 pub ", line_of(READING, Names(), 1_700_000_000.25))


def test_options_are_parsed_without_opening_anything() -> None:
    assert parsed("recv", "tcp://127.0.0.1:1", "--names", "a,b", "--names", "c").names == ["a", "b", "c"]
