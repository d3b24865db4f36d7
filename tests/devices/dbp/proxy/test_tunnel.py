"""A tunnel whose other side asks and never reads, or says nothing: what waits for it is bounded."""

import asyncio
import socket
from contextlib import closing, suppress
from typing import Any

import pytest

from devices.dbp.nodes.listing import Address
from devices.dbp.proxy import tunnel, wire
from devices.dbp.proxy.tunnel import PING_S, SILENT_S, Tunnel
from devices.dbp.proxy.wire import Hello, Target
from tests.helpers.clocks import StandingLoop


class Nothing:
    """A near side that offers nothing."""

    def met(self, tunnel: Tunnel, hello: Hello) -> str:
        return ""

    def offered(self, tunnel: Tunnel, services: dict[str, dict[str, Any]]) -> None:
        pass

    def address_of(self, target: Target) -> Address | None:
        return None


@pytest.mark.parametrize("asked", [wire.pack(wire.PING), wire.pack_open(1, Target("none", "router"))])
async def test_an_end_that_reads_no_answers_is_disconnected(
    asked: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "WAITING_BYTES", 1 << 16)
    near, far = socket.socketpair()  # which holds a part of that
    far.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=near)
    one = Tunnel(reader, writer, False, Hello("near", "near end"), Nothing())
    served = asyncio.ensure_future(one.run())
    with far, suppress(OSError):
        said = wire.pack_hello(Hello("far", "far end")) + asked * (400_000 // len(asked))
        await asyncio.get_running_loop().sock_sendall(far, said)
    assert await served == "the other side reads too slowly"
    assert one.refused["slow reader"] == 1


class At(Nothing):
    """A near side that offers a service at one host."""

    def __init__(self, host: str) -> None:
        self._host = host

    def address_of(self, target: Target) -> Address | None:
        return self._host, 1


@pytest.mark.parametrize("host", ["127.0.0.1", "a..b", "x" * 300])
async def test_a_service_at_which_nobody_can_connect_ends_its_stream(host: str) -> None:
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    far.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=near)
    one, heard = Tunnel(reader, writer, False, Hello("near", "near end"), At(host)), b""
    served = asyncio.ensure_future(one.run())
    with far:
        said = wire.pack_hello(Hello("far", "far end")) + wire.pack_open(1, Target("any", "router"))
        await loop.sock_sendall(far, said)
        while b"cannot connect" not in heard:
            heard += await loop.sock_recv(far, 4096)
    await served
    assert (one.refused["cannot connect"], one.streams) == (1, 0)


@pytest.mark.parametrize("late_s", [0.0, 60.0])
def test_an_end_is_silent_by_the_turns_in_which_it_could_have_been_heard(late_s: float) -> None:
    """A process that had no turn for a minute has heard nobody meanwhile, and that is not their silence."""
    with closing(StandingLoop()) as loop:
        near, far = socket.socketpair()
        reader, writer = loop.run_until_complete(asyncio.open_connection(sock=near))
        served = loop.create_task(Tunnel(reader, writer, False, Hello("near", ""), Nothing()).run())
        far.sendall(wire.pack_hello(Hello("far", "far end")))
        loop.pass_s(0.0)
        for _ in range(int(SILENT_S / PING_S) - 1):
            loop.pass_s(PING_S + late_s)
            assert not served.done()
        loop.pass_s(PING_S + late_s)
        assert served.result() == "the other side closed the connection"
        far.close()


def test_an_end_that_says_something_is_kept() -> None:
    with closing(StandingLoop()) as loop:
        near, far = socket.socketpair()
        reader, writer = loop.run_until_complete(asyncio.open_connection(sock=near))
        one = Tunnel(reader, writer, False, Hello("near", ""), Nothing())
        served = loop.create_task(one.run())
        far.sendall(wire.pack_hello(Hello("far", "far end")))
        loop.pass_s(0.0)
        for _ in range(5):
            far.sendall(wire.pack(wire.PONG))
            loop.pass_s(2 * PING_S)
        assert not served.done()
        one.close()
        loop.run_until_complete(served)
        far.close()
