"""`buscoupler top` over real processes: gateways that stand in for each other, a device, a broker, a kill."""

import asyncio
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.commands.top import local_statuses
from appliance.local.places import runtime_directories
from appliance.status.silent import GatewayName
from tests.appliance.pairs import PAIR, lasting
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.programs import finished, process
from tests.helpers.terminal import shown_by

TOPOLOGY = lasting(PAIR.replace("name: pair", "name: pair{0}"), 2500)


@pytest.fixture
def runtime(socket_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory for this test's processes alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_path.parent))
    return socket_path.parent


async def shown(says: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until some process's status is as asked."""
    await until(lambda: any(says(status) for status in local_statuses(None)[0]))


async def takes_role(program: asyncio.subprocess.Process, role: str, holder: str) -> None:
    """Wait until a gateway has a role, is ready, and knows who holds the lease."""

    def says(status: dict[str, Any]) -> bool:
        ours = status["candidates"] if status["pid"] == program.pid else []
        return [(one["role"], one["holder"], one["ready"]) for one in ours] == [(role, holder, True)]

    await shown(says)


async def up(program: asyncio.subprocess.Process) -> None:
    """Wait until a process answers."""
    await shown(lambda status: status["pid"] == program.pid)


@pytest.mark.timeout(120)
async def test_roles_leases_and_a_killed_gateway(runtime: Path, tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    ports = [free_port() for _ in range(3)]
    file.write_text(TOPOLOGY.format(*ports))
    words = "run", str(file), "--gateway"
    async with process(*words, "hub"), process(*words, "gw-a") as first, process(*words, "gw-b") as other:
        await takes_role(first, "active", "gw-a")
        await takes_role(other, "standby", "gw-a")
        text = (await asyncio.to_thread(finished, "top", "--once")).stdout
        found = re.search(r"joint: active(?:, settling)?, epoch (\d+), holder gw-a", text)
        assert found is not None
        epoch = int(found[1])
        assert re.search(f"joint: standby(, settling)?, epoch {epoch}, holder gw-a", text)
        assert f"lease of joint: holder gw-a, epoch {epoch}" in text
        assert "gw-a: forwards, order 0" in text
        first.kill()
        await first.wait()
        await takes_role(other, "active", "gw-b")
        text = (await asyncio.to_thread(finished, "top", "--once")).stdout
        assert (
            f"pair{ports[0]} on gw-a (127.0.0.1): silent: its process ended without closing, or hangs" in text
        )
        assert re.search(f"joint: active(, settling)?, epoch {epoch + 1}, holder gw-b", text)
        assert GatewayName(f"pair{ports[0]}", "gw-a") in (await asyncio.to_thread(local_statuses, None))[1]


async def test_a_device_and_both_brokers_are_shown_and_leave_nothing(runtime: Path) -> None:
    device, broker, syndication = (f"tcp://127.0.0.1:{free_port()}" for _ in range(3))
    async with (
        process("device", device) as one,
        process("broker", broker) as other,
        process("syndicate", syndication) as third,
    ):
        await up(third)
        await up(one)
        await up(other)
        text = (await asyncio.to_thread(finished, "top", "--once")).stdout
        assert f"{device}: device, process {one.pid}" in text
        assert f"{broker}: broker, process {other.pid}" in text
        assert f"broker at {broker}" in text
        assert f"syndication at {syndication}: producers 0, remembered 0, subscriptions 0" in text
        for program in (one, other, third):
            program.send_signal(signal.SIGTERM)
            await program.communicate()
    assert list(runtime.glob("buscoupler-*/*/*")) == []


async def test_a_killed_device_is_no_silent_gateway_and_the_next_one_sweeps(runtime: Path) -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    async with process("device", url) as one:
        await up(one)
        one.kill()
        await one.wait()
    statuses, left = local_statuses(None)
    assert one.pid not in [status["pid"] for status in statuses]
    assert not any(name.gateway == str(one.pid) for name in left)
    async with process("device", url) as other:
        await up(other)
        assert [path.name for path in runtime.glob("buscoupler-*/device/*")] == [str(other.pid)]


@pytest.mark.parametrize("columns", [80, 120])
async def test_the_page_on_a_terminal_fits_it(runtime: Path, columns: int) -> None:
    urls = f"tcp://127.0.0.1:{free_port()}", f"ipc://{runtime}/{'long' * 12}.sock"
    async with process("device", *urls) as device:
        await up(device)
        command = [sys.executable, "-m", "buscoupler", "top", "--once"]
        text = await asyncio.to_thread(on_terminal, command, {"COLUMNS": str(columns)})
        assert "device, process" in text
        assert max(map(len, text.splitlines())) <= columns


def on_terminal(command: list[str], more: dict[str, str]) -> str:
    """Run a command on a pseudo-terminal, and return what it shows."""
    terminal, slave = pty.openpty()
    with subprocess.Popen(command, stdout=slave, env=os.environ | more):
        os.close(slave)
        text = shown_by(terminal)
    os.close(terminal)
    return text.decode()


def test_root_sees_the_gateways_of_service_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes no directory for a user's that belongs to somebody else."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    owner = os.geteuid()
    (tmp_path / f"buscoupler-{owner}").mkdir()
    (tmp_path / f"buscoupler-{owner + 1}").mkdir()
    found = runtime_directories()
    assert tmp_path / f"buscoupler-{owner}" in found
    assert tmp_path / f"buscoupler-{owner + 1}" not in found
