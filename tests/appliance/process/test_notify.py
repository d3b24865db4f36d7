"""What the service manager hears, from real processes: the tests stand in for systemd at the other end."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import pytest

from appliance.process import notify
from appliance.reload.client import reload, reload_socket
from appliance.reload.outcome import Request
from appliance.status.client import ask, status_socket
from tests.appliance.pairs import PAIR
from tests.helpers import alone
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.programs import COMMAND

WATCHDOG_S = 10.0  # as `buscoupler install` writes it
BEAT_USEC = 300_000  # a beat every 100 ms, so that its end is soon seen


class ServiceManager:
    """The end of a notify socket that systemd would have. `words` is all that was said, in order."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.words: list[str] = []
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.setblocking(False)
        self._sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    def hear(self) -> list[str]:
        """Take what came, and return all words."""
        with suppress(BlockingIOError):
            while True:
                self.words += self._sock.recv(4096).decode().splitlines()
        return self.words

    def beats(self) -> int:
        return self.hear().count(notify.ALIVE)

    def states(self) -> list[str]:
        """Return what was said, without beats, times and health."""
        beside = notify.ALIVE, "MONOTONIC", "STATUS"
        return [word for word in self.hear() if not word.startswith(beside)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, socket_path: Path) -> Iterator[ServiceManager]:
    with ServiceManager(str(socket_path) if request.param == "path" else f"@{socket_path}") as made:
        yield made


@pytest.fixture
def managers(tmp_path: Path) -> Iterator[dict[str, ServiceManager]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(ServiceManager(f"@{tmp_path}/{name}"))
            for name in ("hub", "gw-a", "gw-b")
        }


@asynccontextmanager
async def started(manager: ServiceManager, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a command as a service manager does that watches it, and end it."""
    watched = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": str(BEAT_USEC)}
    program = await asyncio.create_subprocess_exec(
        *COMMAND,
        *words,
        env=alone() | watched,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
        await program.communicate()


async def test_it_is_told_of_the_start_each_beat_and_the_end(manager: ServiceManager) -> None:
    async with started(manager, "device", f"tcp://127.0.0.1:{free_port()}") as program:
        await until(lambda: manager.beats() >= 3)
        assert manager.states() == ["READY=1"]
        program.send_signal(signal.SIGTERM)
        await program.communicate()
        assert manager.states() == ["READY=1", "STOPPING=1"]
        assert program.returncode == 0


async def test_a_reload_is_told_and_possible_as_soon_as_it_is_ready(
    tmp_path: Path, manager: ServiceManager
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(PAIR.format(*[free_port() for _ in range(3)]))
    where = "--run-directory", str(tmp_path / "r")
    async with started(manager, "run", str(file), "--gateway", "hub", *where):
        await until(lambda: manager.states() == ["READY=1"])
        door = tmp_path / "r" / reload_socket(())
        assert await asyncio.to_thread(reload, door, Request(), 20.0) is not None
        await until(lambda: manager.states() == ["READY=1", "RELOADING=1", "READY=1"])
        assert any(word.startswith("MONOTONIC_USEC=") for word in manager.words)


async def test_a_loop_that_stands_still_says_nothing_and_its_lease_goes_to_another_before_it_is_restarted(
    tmp_path: Path, managers: dict[str, ServiceManager]
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(PAIR.format(*[free_port() for _ in range(3)]))

    def run(name: str) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
        where = "--run-directory", str(tmp_path / name)
        return started(managers[name], "run", str(file), "--gateway", name, *where)

    def role(name: str) -> str:
        try:
            (candidate,) = ask(tmp_path / name / status_socket(()))["candidates"]
        except OSError:
            return "not there"
        return str(candidate["role"])

    async with run("hub"), run("gw-a") as first:
        await until(lambda: role("gw-a") == "active")
        async with run("gw-b"):
            await until(lambda: role("gw-b") == "standby")
            await until(lambda: managers["gw-a"].beats() >= 3)
            first.send_signal(signal.SIGSTOP)
            managers["gw-a"].hear()
            before = managers["gw-a"].beats()
            await until(lambda: role("gw-b") == "active", WATCHDOG_S)
            assert managers["gw-a"].beats() == before
            assert managers["gw-b"].beats() > 0
            first.send_signal(signal.SIGCONT)
            await until(lambda: managers["gw-a"].beats() > before)
            await until(lambda: role("gw-a") != "active" or role("gw-b") != "active")


async def test_a_process_that_the_watchdog_ends_shows_where_it_stood_still(
    manager: ServiceManager,
) -> None:
    async with started(manager, "device", f"tcp://127.0.0.1:{free_port()}") as program:
        await until(lambda: manager.states() == ["READY=1"])
        program.send_signal(signal.SIGABRT)
        _, errors = await program.communicate()
    assert b"most recent call first" in errors
    assert b"in _serve" in errors or b"in run_forever" in errors


def test_nothing_is_sent_without_a_manager(monkeypatch: pytest.MonkeyPatch, socket_path: Path) -> None:
    for address in ("", "nowhere", "@nobody", str(socket_path), "/" + "x" * 200):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        assert not notify.tell(notify.READY)
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert not notify.tell(notify.READY)


def test_words_from_outside_are_one_assignment(
    manager: ServiceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    assert notify.tell("STATUS=a\nWATCHDOG=trigger\ud800")
    assert manager.hear() == ["STATUS=a?WATCHDOG=trigger?"]


@pytest.mark.parametrize(
    ("usec", "pid", "limit_s"),
    [("3000000", None, 3.0), ("0", None, None), ("x", None, None), ("3000000", "1", None)],
)
def test_a_watchdog_is_for_the_process_that_it_names(
    monkeypatch: pytest.MonkeyPatch, usec: str, pid: str | None, limit_s: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    if pid is None:
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
    else:
        monkeypatch.setenv("WATCHDOG_PID", pid)
    assert notify.watchdog_s() == limit_s
