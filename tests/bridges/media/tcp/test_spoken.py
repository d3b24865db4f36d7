"""A TCP stream whose peer is asked: a gateway has a connection only while it may ask."""

import asyncio
import socket
from asyncio import TimerHandle
from collections.abc import Callable
from typing import Any

import pytest

from bridges.media.tcp.medium import Tcp
from bridges.media.tcp.spoken import tcp_spoken
from bridges.protocols.modbus.protocol import Modbus, Register
from bus.hub import Hub
from tests.helpers.peers import until

ASKING = Modbus(registers=(Register(register=3, pattern=("a",)),))


def watched(patch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that returns the functions that timers of links wait to call."""
    loop, made = asyncio.get_running_loop(), list[tuple[TimerHandle, str]]()
    call_later = loop.call_later

    def remember(delay_s: float, call: Any, *words: Any, **more: Any) -> TimerHandle:
        made.append((call_later(delay_s, call, *words, **more), getattr(call, "__name__", "")))
        return made[-1][0]

    patch.setattr(loop, "call_later", remember)
    return lambda: [name for timer, name in made if not timer.cancelled() and timer.when() > loop.time()]


async def test_a_device_that_is_lost_again_and_again_is_watched_by_one_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = watched(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = Tcp(host="127.0.0.1", port=server.getsockname()[1])
        link: Any = tcp_spoken(options, ASKING, retry_min_s=0.001, retry_max_s=0.001)
        link.open(Hub(), asyncio.get_running_loop())
        try:
            for _ in range(10):
                (await asyncio.to_thread(server.accept))[0].close()
                losses = link.losses
                await until(lambda before=losses: link.losses > before)  # type: ignore[misc]
            await until(lambda: link.state == "up")
            assert waiting().count("_look_whether_still") == 1
        finally:
            link.close()
    assert waiting().count("_look_whether_still") == 0
