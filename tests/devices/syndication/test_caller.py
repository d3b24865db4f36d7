"""A client of ours: what it says and hears, brokers that go and come back, and servers that are none."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from threading import Thread
from typing import Any

import pytest

from tests.helpers.clocks import wait_in_vain
from tests.helpers.ports import free_port
from tests.helpers.talker import GUARD_S, read, send_whole

pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.errors import LinkError
from devices.syndication.answers import ReceivedPublication
from devices.syndication.bounds import Bounds
from devices.syndication.caller import Caller, RefusedQuery, UnreachedError, Update, follow
from devices.syndication.wire.messages import Difference, Form, Publication, pack
from tests.devices.syndication.tcp_clients import Home, home


def url_of(here: Home) -> str:
    return str(here.service.urls[0])


def shown(said: Update) -> Any:
    return said if isinstance(said, ReceivedPublication) else (list(said.new), list(said.gone))


async def nexts(answers: AsyncIterator[Update], count: int) -> list[Any]:
    """Return the next things that are said."""
    async with asyncio.timeout(20):
        return [shown(await anext(answers)) for _ in range(count)]


async def test_it_publishes_and_subscribes() -> None:
    async with home() as here, Caller(url_of(here)) as caller:
        await caller.publish("a1", {"Room": "410"}, 21.5)
        await caller.subscribe("has Room")
        await caller.publish("a1", {}, [22, None])
        assert await nexts(caller, 2) == [(["a1"], []), ReceivedPublication("a1", {}, [22, None])]
        await caller.subscribe("select distinct Room")
        await caller.publish("a1", {"Room": None, "Floor": 4}, None)
        assert await nexts(caller, 2) == [(["410"], ["a1"]), ([], ["410"])]


async def test_a_wrong_query_raises_and_the_connection_goes_on() -> None:
    async with home(Bounds(queries=1)) as here, Caller(url_of(here)) as caller, Caller(url_of(here)) as other:
        await caller.subscribe("Room = 410a")
        with pytest.raises(RefusedQuery, match="character 8: expected a value") as caught:
            await caller.hear()
        assert caught.value.wrong
        await caller.subscribe("")
        assert await nexts(caller, 1) == [([], [])]
        await other.subscribe("")
        with pytest.raises(RefusedQuery, match="queries full") as caught:
            await other.hear()
        assert not caught.value.wrong


async def test_a_cancelled_wait_loses_nothing() -> None:
    async with home() as here, Caller(url_of(here)) as caller:
        await caller.subscribe("")
        await nexts(caller, 1)
        waiting = asyncio.create_task(caller.hear())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await caller.publish("a", {}, 1)
        assert await nexts(caller, 2) == [(["a"], []), ReceivedPublication("a", {}, 1)]


async def test_it_says_that_the_broker_is_gone() -> None:
    async with home() as here:
        caller = Caller(url_of(here))
        await caller.open()
        await caller.subscribe("")
        await nexts(caller, 1)
    with pytest.raises(LinkError, match=r"^tcp://127.0.0.1:\d+: the broker closed the connection$"):
        await caller.hear()
    with pytest.raises(LinkError, match="the broker closed the connection"):
        await caller.publish("a", {}, 1)
    caller.close()
    caller.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:4444", "an address must start with"),
        ("tcp://0.0.0.0:4444", "name a host and a port"),
        ("ws://127.0.0.1:4444", "a syndication broker is at tcp://HOST:PORT"),
    ],
)
def test_an_address_that_cannot_be(url: str, why: str) -> None:
    with pytest.raises(LinkError, match=why):
        Caller(url)


# following


@asynccontextmanager
async def following(url: str, query: str, lost: list[str]) -> AsyncIterator[AsyncGenerator[Update, None]]:
    async with aclosing(follow(url, query, 20.0, lambda error: lost.append(str(error)))) as answers:
        yield answers


async def test_what_a_broker_said_before_it_went_is_heard_though_nothing_can_be_published_any_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        caller = Caller("tcp://{}:{}".format(*server.getsockname()))
        await caller.open()
        broker = server.accept()[0]
        send_whole(broker, pack(["a", {}, 1]) * 1000)
        broker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        broker.close()
        with suppress(LinkError):
            while True:
                await caller.publish("b", {}, 2)
        assert await nexts(caller, 1000) == [ReceivedPublication("a", {}, 1)] * 1000
        with pytest.raises(LinkError, match=r"reset|pipe"):
            await caller.hear()
        caller.close()


async def test_after_a_connection_is_lost_a_difference_says_what_has_changed_since() -> None:
    lost, heard = list[str](), Publication("a", {}, b"\x01").packed(Form.UNTAGGED)
    lives = [
        Difference(["a", 1, [2]]).packed(Form.UNTAGGED)
        + Difference(["b"], ["a"]).packed(Form.UNTAGGED)
        + heard,
        Difference([[2], "b", 1]).packed(Form.UNTAGGED) + heard,
        Difference(["b", True]).packed(Form.UNTAGGED)[:-1],
        Difference(["b", True]).packed(Form.UNTAGGED),
    ]
    async with stranger(*lives) as url, following(url, "", lost) as answers:
        assert await nexts(answers, 5) == [
            (["a", 1, [2]], []),
            (["b"], ["a"]),
            ReceivedPublication("a", {}, 1),
            ReceivedPublication("a", {}, 1),
            ([True], [[2], 1]),
        ]
    assert lost == [f"{url}: the broker closed the connection"] * 2


async def test_a_broker_that_is_replaced_is_followed_on() -> None:
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    async with following(url, "select distinct Room", []) as answers:
        for room in ("410", "411"):
            async with home(port=port), Caller(url) as producer:
                await producer.publish("a", {"Room": room}, 1)
                async with asyncio.timeout(20):
                    while room not in (await anext(answers)).new:  # type: ignore[union-attr]
                        pass


async def test_it_waits_for_a_broker_that_is_about_to_start() -> None:
    port = free_port()
    async with following(f"tcp://127.0.0.1:{port}", "", []) as answers:
        waiting = asyncio.create_task(nexts(answers, 1))
        await asyncio.sleep(0)
        async with home(port=port):
            assert await waiting == [([], [])]


async def test_without_a_broker_it_fails_in_time() -> None:
    async with aclosing(follow(f"tcp://127.0.0.1:{free_port()}", "", 0.05)) as answers:
        with pytest.raises(UnreachedError, match="Connection refused"):
            await nexts(answers, 1)


async def test_a_wrong_query_is_not_asked_again() -> None:
    async with home() as here, following(url_of(here), "Room =", []) as answers:
        with pytest.raises(RefusedQuery):
            await nexts(answers, 1)


@asynccontextmanager
async def stranger(*lives: bytes) -> AsyncIterator[str]:
    """A server that says these things, a connection each. It ends all connections but the last."""
    left, tasks = list(lives), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        if left:
            writer.write(left.pop(0))
        await reader.read(1 if left else -1)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"tcp://{host}:{port}"
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.wait(tasks)


@pytest.mark.parametrize(
    ("greeting", "ends", "why"),
    [
        (
            b"SSH-2.0-x\r\n",
            False,
            "this is no syndication broker: it says 53 53 48 2d 32 2e 30 2d; it said: SSH-2.0-x",
        ),
        (b"", True, "the broker closed the connection without a word: is it a syndication broker?"),
        (b"\x93\xa1a\x80\x01", False, "a publication came before the set of the query"),
    ],
)
async def test_a_server_of_another_kind_is_called_so(greeting: bytes, ends: bool, why: str) -> None:
    async with stranger(greeting, *[b""] * ends) as url, aclosing(follow(url, "", 20.0)) as answers:
        with pytest.raises(LinkError) as caught:
            await nexts(answers, 1)
        assert str(caught.value) == f"{url}: {why}"


async def test_a_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_in_vain(monkeypatch)
    async with stranger(b"") as url, aclosing(follow(url, "", 0.05)) as answers:
        with pytest.raises(LinkError, match=r"no answer within 0.5 s: is it a syndication broker\?"):
            await nexts(answers, 1)


def test_what_was_published_is_at_the_broker_when_a_program_ends() -> None:
    said_bytes, heard_bytes = 0, list[int]()

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as peer:
            peer.settimeout(GUARD_S)
            heard_bytes.append(read(peer))

    async def program(port: int, reading: Thread) -> None:
        nonlocal said_bytes
        async with Caller(f"tcp://127.0.0.1:{port}") as caller:
            while not caller.waiting_bytes:
                said_bytes += len(pack(["a1", {}, "v" * 2000]))
                await caller.publish("a1", {}, "v" * 2000)
            reading.start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        reading = Thread(target=serve, args=(listener,))
        asyncio.run(program(listener.getsockname()[1], reading))
        reading.join()
    assert heard_bytes == [said_bytes]
