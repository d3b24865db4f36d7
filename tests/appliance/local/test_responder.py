"""Responders: a client that takes no answer keeps no connection, and a socket file of another stays."""

import asyncio
import socket
from asyncio import StreamReader
from pathlib import Path

import pytest

from appliance.local import responder
from appliance.local.responder import Responder
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
