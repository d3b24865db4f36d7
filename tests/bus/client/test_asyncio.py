"""The application's socket in a program of asyncio."""

import asyncio
import select
from collections.abc import Awaitable, Callable

import pytest

from bus.client.socket import Bus, RawBus
from bus.wire.frame import PUB, Frame
from bus.wire.pattern import token
from tests.bus.client.sockets import LOOPBACK, TEMP, WAIT_S


async def test_async_twins() -> None:
    async with Bus(listen=LOOPBACK) as a, Bus(dial=a.urls[0]) as b:
        assert await a.await_peers(1, WAIT_S)
        await b.asend(("x",), b"1")
        assert await a.arecv(WAIT_S) == Frame(PUB, (token("x"),), b"1")
        await b.asend_bytes(b"raw")
        assert await a.arecv_bytes(WAIT_S) == b"raw"
        await b.asend_bytes(b"junk")
        await b.asend(("x",), b"2")
        assert (await a.arecv(WAIT_S)).data == b"2"
        assert a.rejected == 1
        with pytest.raises(TimeoutError):
            await a.arecv(0.1)


async def test_async_iteration_ends_when_the_socket_closes() -> None:
    async with Bus(listen="inproc://iteration") as a, Bus(dial="inproc://iteration") as b:
        assert await a.await_peers(1, WAIT_S)

        heard: list[bytes] = []
        complete = asyncio.Event()

        async def collect() -> None:
            async for frame in a:
                heard.append(frame.data)
                if len(heard) == 200:
                    complete.set()

        task = asyncio.create_task(collect())
        for number in range(200):
            await b.asend(TEMP, b"%d" % number)
        await asyncio.wait_for(complete.wait(), WAIT_S)
        await a.aclose()
        await asyncio.wait_for(task, WAIT_S)
        assert heard == [b"%d" % number for number in range(200)]


async def test_a_cancelled_receive_loses_no_message_and_two_may_wait() -> None:
    async with Bus(listen="inproc://cancel") as a, Bus(dial="inproc://cancel") as b:
        assert await a.await_peers(1, WAIT_S)
        waiting = [asyncio.create_task(a.arecv()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        for number in range(3):
            b.send((number,))
        heard = {(await asyncio.wait_for(task, WAIT_S)).tokens for task in waiting[1:]}
        heard.add((await a.arecv(WAIT_S)).tokens)
        assert heard == {(0,), (1,), (2,)}


async def test_a_busy_receiver_lets_other_tasks_run() -> None:
    async with Bus(listen="inproc://busy") as a, Bus(dial="inproc://busy") as b:
        assert await a.await_peers(1, WAIT_S)
        for number in range(1000):
            b.send((number,))
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(1000):
            await a.arecv(WAIT_S)
        task.cancel()
        assert turns >= 10


async def test_raw_async_twins() -> None:
    async with (
        RawBus(listen="inproc://raw") as hub,
        Bus(dial="inproc://raw") as a,
        Bus(dial=["inproc://raw"]) as b,
    ):
        assert await hub.await_peers(2, WAIT_S)
        await a.asend_bytes(b"1")
        async for message, peer in hub:
            await hub.asend(message + b"!", exclude=peer)
            break
        assert await b.arecv_bytes(WAIT_S) == b"1!"
        await b.asend_bytes(b"2")
        message, peer = await hub.arecv(WAIT_S)
        assert message == b"2"
        assert peer in hub.peers


@pytest.mark.parametrize(
    ("kind", "receive"), [(Bus, Bus.arecv), (Bus, Bus.arecv_bytes), (RawBus, RawBus.arecv)]
)
async def test_what_is_there_is_received_also_without_time_to_wait(
    kind: type[Bus] | type[RawBus], receive: Callable[..., Awaitable[object]]
) -> None:
    """A program that emptied its socket was told at each 64th message that none had arrived."""
    async with Bus(listen="inproc://now") as sender, kind(dial="inproc://now") as receiver:
        assert await sender.await_peers(1, WAIT_S)
        there = select.poll()
        there.register(receiver._nng.recv_fd, select.POLLIN)  # noqa: SLF001
        for _ in range(130):
            sender.send((1,))
            assert there.poll(1000 * WAIT_S)
            assert await receive(receiver, timeout=0)
