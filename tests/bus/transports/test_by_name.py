"""Dialling by name: each address of the name is tried, in turn, by all who dial."""

import asyncio
import contextlib
import gc
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bus.hub import Hub
from bus.leases.candidate import Candidate
from bus.leases.link import BrokerLink
from bus.serving.lasting import open_stream
from bus.transports import sockets
from bus.transports.links import make_link
from bus.transports.sockets import connect_by_name
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Socket
from tests.helpers.peers import until
from tests.helpers.ports import free_port


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port of `gw.example`, a name of two addresses. Nobody listens at the first."""
    found = free_port()

    async def look_up(host: str, number: int, **_: Any) -> list[Any]:
        assert (host, number) == ("gw.example", found)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, number))
            for address in ("127.0.0.2", "127.0.0.1")
        ]

    monkeypatch.setattr(
        asyncio.BaseEventLoop, "getaddrinfo", lambda self, *args, **more: look_up(*args, **more)
    )
    return found


async def test_a_link_finds_the_address_that_takes_it(port: int) -> None:
    loop = asyncio.get_running_loop()
    near, far = make_link(f"tcp://127.0.0.1:{port}", "listen"), make_link(f"tcp://gw.example:{port}", "dial")
    with closing(near), closing(far):
        near.open(Hub(), loop)
        far.open(Hub(), loop)
        await until(lambda: far.state == "up")


async def test_so_does_a_zeromq_socket(port: int) -> None:
    loop = asyncio.get_running_loop()
    heard = list[Any]()
    with closing(Socket("router", heard.extend)) as near, closing(Socket("dealer", heard.extend)) as far:
        near.open(loop)
        near.bind("127.0.0.1", port)
        far.open(loop)
        far.connect("gw.example", port)
        far.send([b"hello"])
        await until(lambda: heard)


@pytest.fixture
def useless(port: int) -> Iterator[None]:
    """A program at the first address that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.2", port)):
        yield


@pytest.mark.usefixtures("useless")
async def test_a_link_leaves_an_address_that_takes_it_and_is_of_no_use(port: int) -> None:
    loop = asyncio.get_running_loop()
    near = make_link(f"tcp://127.0.0.1:{port}", "listen")
    far = make_link(f"tcp://gw.example:{port}", "dial", handshake_s=0.05, retry_min_s=0.001)
    with closing(near), closing(far):
        near.open(Hub(), loop)
        far.open(Hub(), loop)
        await until(lambda: far.state == "up")


@pytest.mark.usefixtures("useless")
async def test_so_does_a_zeromq_socket_that_is_not_greeted(port: int) -> None:
    loop = asyncio.get_running_loop()
    limits, heard = Limits(handshake_s=0.05, retry_min_s=0.001), list[Any]()
    with closing(Socket("router", heard.extend)) as near, closing(Socket("dealer", print, limits)) as far:
        near.open(loop)
        near.bind("127.0.0.1", port)
        far.open(loop)
        far.connect("gw.example", port)
        far.send([b"hello"])
        await until(lambda: heard)


@pytest.mark.parametrize("first", ["refuses", "never answers"])
async def test_so_does_a_candidate_with_its_broker(
    port: int, first: str, request: pytest.FixtureRequest
) -> None:
    """A lease is shorter than the time after which the next address is tried beside the first."""
    if first == "never answers":
        request.getfixturevalue("full")
    candidate = Candidate((1,), "x", 5, 0, 1, lease_ms=100)
    link = BrokerLink(candidate, 0, ("gw.example", port), lambda: None)
    with socket.create_server(("127.0.0.1", port)), closing(link):
        link.open(asyncio.get_running_loop())
        await until(lambda: candidate.view(0).reach == "up")


@pytest.fixture
def full(port: int) -> Iterator[None]:
    """A listener at the first address that takes nobody any more: connections to it wait for ever."""
    with contextlib.ExitStack() as stack:
        near = stack.enter_context(socket.create_server(("127.0.0.2", port), backlog=0))
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(near.getsockname())
        yield


@pytest.mark.usefixtures("full")
async def test_an_address_that_never_answers_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "_CONNECT_S", 3600.0)
    with socket.create_server(("127.0.0.1", port)):
        made, address = await connect_by_name(asyncio.get_running_loop(), "gw.example", port)
        with made:
            assert (address, made.getpeername()) == (("127.0.0.1", port), ("127.0.0.1", port))
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})


async def test_a_connection_that_is_made_when_nobody_wants_it_any_more_is_closed(port: int) -> None:
    """It is cancelled at each step of the loop until it has ended: an unclosed socket would be a warning."""
    loop, steps, is_done = asyncio.get_running_loop(), 0, False
    with socket.create_server(("127.0.0.1", port)):
        while not is_done:
            task, steps = loop.create_task(connect_by_name(loop, "gw.example", port)), steps + 1
            for _ in range(steps):
                await asyncio.sleep(0)
            if is_done := task.done():
                task.result()[0].close()
            task.cancel()
            await asyncio.wait([task])
    gc.collect()
    assert steps > 5


@pytest.mark.usefixtures("full")
async def test_a_stream_finds_the_address_that_takes_it(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_CONNECT_S", 3600.0)
    with socket.create_server(("127.0.0.1", port)):
        _, writer = await open_stream("gw.example", port)
        assert writer.get_extra_info("peername") == ("127.0.0.1", port)
        writer.close()


@pytest.mark.usefixtures("full")
def test_a_loop_may_end_while_a_name_is_dialled(port: int) -> None:
    """What its tasks leave is collected then, where an exception would be a warning."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(connect_by_name(loop, "gw.example", port))
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not task.done()
    del task
    gc.collect()


async def test_where_none_takes_it_the_last_says_why(port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        await connect_by_name(asyncio.get_running_loop(), "gw.example", port)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("turn", [0, 1])
async def test_it_is_no_refusal_while_an_address_may_be_alive(
    port: int, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that refuses counts as dead, and then a gateway forwards without it."""
    monkeypatch.setattr(sockets, "_CONNECT_S", 0.05)
    with pytest.raises(OSError, match="timed out"):
        await connect_by_name(asyncio.get_running_loop(), "gw.example", port, turn)


async def test_an_address_is_not_looked_up(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        made, _ = await connect_by_name(asyncio.get_running_loop(), "127.0.0.1", port)
        made.close()
