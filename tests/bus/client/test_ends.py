"""The application's socket ends: for its receivers, and for those who wait for peers."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from bus.client.socket import Bus, ClosedError
from tests.bus.client.sockets import TEMP, WAIT_S


def test_closing_ends_iteration_and_a_receiver_in_another_thread() -> None:
    bus, ended = Bus(listen="inproc://ending"), threading.Event()

    def listen() -> None:
        for _ in bus:
            pass
        ended.set()

    thread = threading.Thread(target=listen)
    thread.start()
    with Bus(dial="inproc://ending") as peer:
        peer.send(TEMP)
    bus.close()
    bus.close()
    assert ended.wait(WAIT_S)
    thread.join()
    with pytest.raises(ClosedError):
        bus.recv(0)
    with pytest.raises(ClosedError):
        bus.send(TEMP)


def _waits_in_a_thread(bus: Bus) -> None:
    with pytest.raises(ClosedError):
        bus.wait_peers(1)


async def _waits_in_a_task(bus: Bus) -> None:
    waiting = asyncio.ensure_future(bus.await_peers(1))
    await asyncio.sleep(0)
    await bus.aclose()
    with pytest.raises(ClosedError):
        await waiting


async def _is_cancelled(bus: Bus) -> None:
    waiting = asyncio.ensure_future(bus.await_peers(1))
    await asyncio.sleep(0)
    waiting.cancel()


async def _is_cancelled_at_its_entrance(bus: Bus) -> None:
    entrance = asyncio.ensure_future(bus.__aenter__())
    await asyncio.sleep(0)
    entrance.cancel()
    await bus.aclose()


@pytest.mark.parametrize(
    "way",
    [
        _waits_in_a_thread,
        lambda bus: asyncio.run(_waits_in_a_task(bus)),
        lambda bus: asyncio.run(_is_cancelled(bus)),
        lambda bus: asyncio.run(_is_cancelled_at_its_entrance(bus)),
    ],
)
def test_a_wait_for_peers_ends_with_its_socket_and_with_its_task(way: Callable[[Bus], None]) -> None:
    """Neither a closed socket nor Ctrl-C leaves a thread that waits for ever: the program could not end."""
    bus = Bus(dial="inproc://nobody", connect_s=10 * WAIT_S, linger_s=0)
    thread = threading.Thread(target=way, args=(bus,), daemon=True)
    thread.start()
    if way is _waits_in_a_thread:
        bus.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    bus.close()


def test_forgetting_to_close_is_a_warning() -> None:
    bus = Bus(listen="inproc://forgotten")
    with pytest.warns(ResourceWarning, match="unclosed"):
        bus.__del__()
