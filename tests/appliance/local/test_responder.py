"""Responders: a client that takes no answer keeps no connection, and a socket file of another stays."""

import asyncio
import socket
from asyncio import StreamReader
from pathlib import Path

import pytest

from appliance.local import responder
from appliance.local.places import runtime_directory
from appliance.local.responder import Responder, WithResponders
from bus.hub import Hub
from tests.helpers.peers import until


async def much(_: StreamReader) -> bytes:
    return bytes(8 << 20)


async def test_a_client_that_does_not_read_is_let_go(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder, "TAKE_S", 0.05)
    here = Responder(socket_path, much, "")
    await here.open()
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        await loop.sock_connect(client, str(socket_path))
        await until(lambda: is_reset(client))
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    here.close()
    assert not socket_path.exists()


def is_reset(client: socket.socket) -> bool:
    """Return whether the other side is gone: what is written then fails."""
    try:
        client.send(b"x")
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


async def test_a_socket_file_that_another_has_taken_over_stays(socket_path: Path) -> None:
    here = Responder(socket_path, much, "")
    await here.open()
    socket_path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(socket_path))
        here.close()
        assert socket_path.exists()


async def test_its_file_is_there_only_once_it_listens(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(socket.socket):
        def listen(self, backlog: int = 1) -> None:
            assert not socket_path.exists()
            super().listen(backlog)

    socket_path.with_suffix(".open").touch()  # what a killed process left
    monkeypatch.setattr(socket, "socket", Late)
    here = Responder(socket_path, much, "")
    await here.open()
    assert [one.name for one in socket_path.parent.iterdir()] == [socket_path.name]
    here.close()


@pytest.mark.parametrize("place", ["plant/gw-a", "device/4711", "a/b/c"])
async def test_nothing_is_left_in_the_runtime_directory(
    place: str, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_path.parent))
    here = [Responder(runtime_directory() / f"{place}{more}" / "s.sock", much, "") for more in ("", "-other")]
    services = [WithResponders(Parts(), one) for one in here]
    for service in services:
        service.open(asyncio.get_running_loop())
        await service.opened()
    services[0].close()
    assert [one.path.exists() for one in here] == [False, True]
    services[1].close()
    assert list(runtime_directory().iterdir()) == []


class Parts:
    def open(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def close(self) -> None: ...
    def hubs(self) -> list[Hub]:
        return []
