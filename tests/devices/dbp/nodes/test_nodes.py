"""Services, clients and a catalog over real sockets on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import pytest

from devices.dbp.nodes.client import Client
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.requests import Request
from devices.dbp.nodes.service import Service
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket
from tests.devices.dbp.catalogs import HOST, Start
from tests.helpers.peers import until
from tests.helpers.ports import free_port

INTERVAL_S = 0.1


@asynccontextmanager
async def impatient(url: str) -> AsyncIterator[Client]:
    """A client that is connected to Rohan, and waits 0.1 s for an answer."""
    async with Client(url, timeout_s=20.0) as client:
        await client.ask("Rohan", "ping")
        client._timeout_s = 0.1  # noqa: SLF001
        yield client


async def echo(request: Request) -> tuple[bytes, ...]:
    await asyncio.sleep(0)
    return request.body


async def test_a_client_finds_a_service_and_asks_it(start: Start) -> None:
    url = start().urls[0]
    async with Service("Rohan", {"echo": echo}, catalog=url, function="horses", topics=["hay"]) as service:
        await service.listed()
        async with Client(url) as client:
            found = (await client.services())["Rohan"]
            assert (found.function, found.topics) == ("horses", ("hay",))
            assert found == await client.find("Rohan")
            assert await client.ask("Rohan", "echo", b"one", b"two") == (b"one", b"two")
            assert await client.ask("Rohan", "ping") == (b"Rohan",)
            with pytest.raises(NodeError, match="Mordor is not listed"):
                await client.find("Mordor")
            with pytest.raises(NodeError, match="refused: unknown word"):
                await client.ask("Rohan", "dance")
            with pytest.raises(ValueError, match="word of a request"):
                await client.ask("Rohan", "<3")


async def test_what_a_service_publishes_reaches_who_subscribed(start: Start) -> None:
    url = start().urls[0]
    async with Service("Rohan", catalog=url, publishes=True) as service, Client(url) as client:
        await service.listed()
        async with aclosing(client.subscribe("Rohan", "horses/")) as heard:
            first = asyncio.ensure_future(anext(heard))
            while not first.done():
                service.publish("cows/1", b"no")
                service.publish("horses/1", b"yes")
                await asyncio.sleep(0.002)
            assert (await first) == ("horses/1", b"yes")
        with pytest.raises(NodeError, match="Rohan has no interface sub"):
            await anext(client.subscribe("Rohan", interface="sub"))


async def test_nothing_that_a_false_catalog_or_service_says_ends_a_node(start: Start) -> None:
    junk = [[b""], [b"", b"o_O", b"1", b"{"], [b"x", b"y"], [b"", b"OwO", b"1", b'{"liveliness": -1}'],
            [b"", b"o_O", b"1", json.dumps({"a": 1, "b": {"interfaces": {"router": {"ip": 1}}}}).encode()],
            [b"", b"echo"], [b"", b"\xff", b"1"], [b"", b"echo", b"xxxxx"]]  # fmt: skip
    said = 0

    def answer(messages: list[Message]) -> None:
        nonlocal said
        for message in messages:
            router.send([message.frames[0], *junk[said % len(junk)]])
            said += 1

    router = Socket("router", answer)
    router.open(asyncio.get_running_loop())
    url = f"tcp://{HOST}:{router.bind(HOST, 0)}"
    async with Client(url, timeout_s=1.0) as client:
        for _ in junk:
            with suppress(NodeError):
                assert "a" not in await client.services()
    service = Service("Rohan", catalog=url, interval_s=INTERVAL_S)
    await service.open()
    count = said
    await until(lambda: said > count)
    await service.close()
    router.close()


async def test_requests_beyond_the_bound_are_refused_and_a_failing_handler_is_no_end(start: Start) -> None:
    url = start().urls[0]
    wait = asyncio.Event()

    async def slow(_: Request) -> str:
        await wait.wait()
        return "done"

    def broken(_: Request) -> str:
        raise RuntimeError("a defect")

    async with Service("Rohan", {"slow": slow, "broken": broken}, catalog=url) as service:
        await service.listed()
        service.calls._most = 1  # noqa: SLF001
        async with Client(url) as one, Client(url) as two:
            first = asyncio.ensure_future(one.ask("Rohan", "slow"))
            await until(lambda: bool(service.calls._running))  # noqa: SLF001
            with pytest.raises(NodeError, match="too many requests"):
                await two.ask("Rohan", "slow")
            with pytest.raises(NodeError, match="refused: too many requests"):
                await two.ask("Rohan", "broken")
            wait.set()
            assert await first == (b"done",)
            with pytest.raises(NodeError, match="the service failed"):
                await two.ask("Rohan", "broken")
        assert service.calls.refused == {"too many requests": 2, "the service failed": 1}


async def test_an_answer_that_cannot_be_sent_is_a_refusal(start: Start) -> None:
    url = start().urls[0]

    async def later(request: Request) -> str:
        return request.data.decode(errors="surrogateescape")

    async def cancelled(_: Request) -> bytes:
        waited = asyncio.get_running_loop().create_future()
        waited.cancel()
        return bytes(await waited)

    handlers: dict[str, Any] = {
        "text": lambda request: request.data.decode(errors="surrogateescape"),
        "later": later,
        "cancelled": cancelled,
        "number": lambda _: 5,
        "long": lambda _: bytes(1 << 16),
        "many": lambda _: (b"",) * 300,
    }
    async with Service("Rohan", handlers, catalog=url, publishes=True) as service, Client(url) as client:
        await service.listed()
        for word in handlers:
            why = "too long" if word in ("long", "many") else "failed"
            with pytest.raises(NodeError, match=f"Rohan refused: the .* {why}"):
                await client.ask("Rohan", word, b"\xff")
        assert service.calls.refused == {"the service failed": 4, "the answer is too long": 2}
        assert service.calls.served == 0
        with pytest.raises(NodeError, match="request is longer than the 65536 bytes"):
            await client.ask("Rohan", "text", bytes(1 << 16))
        with pytest.raises(NodeError, match="data are longer than the 65536 bytes"):
            service.publish("t", bytes(1 << 16))


async def test_one_connection_to_a_service_serves_all_tasks_and_none_stays(start: Start) -> None:
    url = start().urls[0]
    async with Service("Rohan", {"echo": echo}, catalog=url) as service:
        await service.listed()
        async with Client(url) as client:
            await asyncio.gather(*(client.ask("Rohan", "echo", b"%d" % number) for number in range(20)))
            assert service._router.peers == 1  # noqa: SLF001
        await until(lambda: service._router.peers == 0)  # noqa: SLF001


async def test_a_request_that_waited_for_one_without_an_answer_leaves_no_connection(start: Start) -> None:
    url = start().urls[0]
    answers = asyncio.Event()

    async def slow(_: Request) -> None:
        await answers.wait()

    async with Service("Rohan", {"slow": slow, "echo": echo}, catalog=url) as service:
        await service.listed()
        async with impatient(url) as client:
            first = asyncio.ensure_future(client.ask("Rohan", "slow"))
            await asyncio.sleep(0)
            client._timeout_s = 20.0  # noqa: SLF001
            second = asyncio.ensure_future(client.ask("Rohan", "echo", b"x"))
            with pytest.raises(NodeError, match="no answer"):
                await first
            assert await second == (b"x",)
        await until(lambda: service._router.peers == 0)  # noqa: SLF001
        answers.set()


async def test_another_service_at_the_address_of_one_is_not_taken_for_it(start: Start) -> None:
    """After a restart of a machine its services may have each other's ports."""
    url, port = start().urls[0], free_port()

    def service(name: str, **words: Any) -> Service:
        return Service(name, {"who": lambda _: name}, catalog=url, publishes=True, **words)

    async with Client(url) as client:
        heard = client.subscribe("Rohan", "t")
        async with service("Rohan", port=port) as rohan:
            await rohan.listed()
            assert await client.ask("Rohan", "who") == (b"Rohan",)
            first = asyncio.ensure_future(anext(heard))
            while not first.done():
                rohan.publish("t", b"Rohan")
                await asyncio.sleep(0.002)
            places = rohan.urls
        following = asyncio.ensure_future(anext(heard))
        async with service("Gondor", port=port) as gondor:
            await gondor.listed()
            assert gondor.urls[0] == places[0]
            with pytest.raises(NodeError, match="Rohan is not listed"):
                await client.ask("Rohan", "who")
            async with service("Rohan", port=0) as rohan:
                await rohan.listed()
                assert await client.ask("Rohan", "who") == (b"Rohan",)
                while not following.done():
                    gondor.publish("t", b"Gondor")
                    rohan.publish("t", b"Rohan")
                    await asyncio.sleep(0.002)
        assert (first.result().data, following.result().data) == (b"Rohan", b"Rohan")
        await heard.aclose()


async def test_a_connection_that_ends_without_the_answer_is_told_at_once(start: Start) -> None:
    url = start().urls[0]

    async def slow(_: Request) -> None:
        await asyncio.Event().wait()

    service = Service("Rohan", {"slow": slow}, catalog=url, port=0)
    await service.open()
    await service.listed()
    async with Client(url) as client:
        asked = [asyncio.ensure_future(client.ask("Rohan", "slow")) for _ in range(2)]
        await until(lambda: bool(service.calls._running))  # noqa: SLF001
        await service.close()
        with pytest.raises(NodeError, match="Rohan ended the connection before it answered"):
            await asked[0]
        with pytest.raises(NodeError, match=r"Rohan (is not listed|gave no answer)"):  # not sent
            await asked[1]


BIG = Limits(message_bytes=1 << 20)


@pytest.mark.parametrize(
    ("here", "there", "sent", "told"),
    [
        (
            BIG,
            None,
            100_000,
            "Rohan ended the connection before it answered: it may take less than the 100018",
        ),
        (None, BIG, 100_000, "the request is longer than the 65536 bytes of `limits`"),
        (
            None,
            BIG,
            10,
            "Rohan answered with a message of more than 65536 bytes: give the client the `limits`",
        ),
        (BIG, None, 10, "Rohan refused: the answer is too long"),
    ],
)
async def test_limits_of_one_side_that_the_other_does_not_have_are_told(
    start: Start, here: Limits | None, there: Limits | None, sent: int, told: str
) -> None:
    url = start().urls[0]
    async with Service("Rohan", {"x": lambda _: bytes(100_000)}, catalog=url, limits=there) as service:
        await service.listed()
        async with Client(url, limits=here) as client:
            with pytest.raises(NodeError, match=f"^{told}"):
                await client.ask("Rohan", "x", bytes(sent))


async def test_a_publication_beyond_the_limits_ends_a_subscription_with_the_reason(start: Start) -> None:
    """Each connection would end at it, and nobody would know why nothing comes."""
    url = start().urls[0]
    async with Service("Rohan", catalog=url, publishes=True, limits=BIG) as service, Client(url) as client:
        await service.listed()
        heard = asyncio.ensure_future(anext(client.subscribe("Rohan")))

        def published() -> bool:
            service.publish("x", bytes(100_000))
            return heard.done()

        await until(published)
        with pytest.raises(NodeError, match="published a message of more than 65536 bytes: give the client"):
            await heard


async def test_what_a_peer_did_not_get_is_counted_for_the_program(start: Start) -> None:
    url, answers = start().urls[0], asyncio.Event()

    async def slow(_: Request) -> str:
        await answers.wait()
        return "late"

    async with Service("Rohan", {"x": slow}, catalog=url) as service:
        await service.listed()
        async with impatient(url) as client:
            with pytest.raises(NodeError, match="Rohan gave no answer"):
                await client.ask("Rohan", "x")
        await until(lambda: not service._router.peers)  # noqa: SLF001
        assert service.dropped == {}
        answers.set()
        await until(lambda: service.dropped == {"peer gone": 1})


async def test_a_service_that_does_not_answer_is_told_and_asked_anew(start: Start) -> None:
    url = start().urls[0]
    answers = asyncio.Event()

    async def sometimes(_: Request) -> str:
        await answers.wait()
        return "late"

    async with Service("Rohan", {"x": sometimes, "y": lambda _: "now"}, catalog=url) as service:
        await service.listed()
        async with impatient(url) as client:
            with pytest.raises(NodeError, match=r"Rohan gave no answer within 0\.1 s"):
                await client.ask("Rohan", "x")
            client._timeout_s = 20.0  # noqa: SLF001
            answers.set()
            assert await client.ask("Rohan", "y") == (b"now",)
