"""Every listener in a process of few descriptors: no host shuts out another one, whatever it does."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from bus.transports.secure import context
from tests.conformance.listeners import KINDS, Kind, tls_of
from tests.helpers import ROOT
from tests.helpers.certificates import own_tls

STRANGER, OTHER = "127.0.0.1", "127.0.0.2"
MANY = 300


class Child:
    """The process with the listeners. `log` is what it has logged."""

    def __init__(self, place: Path) -> None:
        own_tls(place)
        self.place, self._log = place, (place / "log").open("w+")
        words = [sys.executable, "-m", "tests.conformance.listeners", str(place)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            words, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=self._log, text=True
        )

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    @property
    def log(self) -> str:
        self._log.flush()
        return (self.place / "log").read_text()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    made = Child(tmp_path_factory.mktemp("seats"))
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def address(child: Child, request: pytest.FixtureRequest, kind: Kind) -> Iterator[Any]:
    """Open the listener; yield where it is."""
    found = json.loads(child.ask(next(name for name, one in KINDS.items() if one is kind)))
    yield found if isinstance(found, str) else tuple(found)
    child.ask("")


def connected(address: Any, host: str) -> socket.socket:
    """Connect from an address of this machine. Raises `OSError`."""
    sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    sock.settimeout(10)
    try:
        if not isinstance(address, str):
            sock.bind((host, 0))
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def is_served(kind: Kind, address: Any, place: Path) -> bool:
    """Return whether another host is answered."""
    if isinstance(address, str):
        return _in_another_process(lambda: _is_answered(kind, address, place))
    return _is_answered(kind, address, place)


def _is_answered(kind: Kind, address: Any, place: Path) -> bool:
    with suppress(OSError), ExitStack() as held:
        sock: Any = held.enter_context(connected(address, OTHER))
        if kind.is_secure:
            secure = context("tls", tls_of(place), listens=False)
            sock = held.enter_context(secure.wrap_socket(sock, server_hostname="localhost"))
        sock.sendall(kind.hello)
        heard = b""
        while len(heard) < len(kind.answer) and (data := sock.recv(len(kind.answer) - len(heard))):
            heard += data
        return heard == kind.answer
    return False


def _in_another_process(work: Any) -> bool:
    """Processes are hosts on a local socket."""
    process = os.fork()
    if not process:
        os._exit(not work())
    return os.waitpid(process, 0)[1] == 0


@pytest.mark.parametrize("greets", [False, True], ids=["silent", "greeted"])
def test_a_host_that_takes_all_it_gets_shuts_out_nobody(
    child: Child, kind: Kind, address: Any, greets: bool
) -> None:
    with ExitStack() as held:
        for turn in range(3):
            for _ in range(MANY if turn == 0 else 40):
                with suppress(OSError):
                    sock = held.enter_context(connected(address, STRANGER))
                    if greets and not kind.is_secure:
                        sock.sendall(kind.hello)
            assert is_served(kind, address, child.place)


def test_without_a_descriptor_a_listener_says_so_in_a_line_and_goes_on_later(
    child: Child, kind: Kind, address: Any
) -> None:
    before = child.log
    child.ask("exhaust")
    with suppress(OSError), connected(address, OTHER) as waiting:
        waiting.settimeout(0.05)
        with suppress(TimeoutError):
            waiting.recv(1)
        child.ask("release")
        assert is_served(kind, address, child.place)
    said = child.log.removeprefix(before)
    assert said.count("cannot accept: Too many open files") == 1
    assert "Traceback" not in said
