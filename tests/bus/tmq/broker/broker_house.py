"""Helpers for tests of brokers and clients: a group of them, deaths, and messages that arrive."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from bus.tmq import Client
from bus.tmq.broker import Broker
from tests.helpers.ports import free_port

HERE = "127.0.0.1:0"
FAST = {"heartbeat_s": 0.05, "return_s": 0.1, "retry_max_s": 0.2}


class House:
    """A group of brokers and clients. At the end it closes them, and checks every ledger."""

    def __init__(self) -> None:
        self.brokers: list[Broker] = []
        self.clients: list[Client] = []
        self._stack = AsyncExitStack()

    def broker(self, listen: str = "tcp://127.0.0.1:0", **options: object) -> Broker:
        broker = Broker(listen, **{**FAST, **options})  # type: ignore[arg-type]
        broker.open(asyncio.get_running_loop())
        self.brokers.append(broker)
        return broker

    async def client(self, *brokers: Broker | str, **options: object) -> Client:
        urls = [broker if isinstance(broker, str) else broker.urls[0] for broker in brokers]
        client = Client(urls, **{"listen": HERE, "wait_s": 20.0, **FAST, **options})  # type: ignore[arg-type]
        self.clients.append(await self._stack.enter_async_context(client))
        return client

    async def close(self) -> None:
        ledgers = [client.stats for client in self.clients]
        await self._stack.aclose()
        for broker in self.brokers:
            broker.close()
        assert [stats.balance() for stats in ledgers] == [0] * len(ledgers)
        assert all(stats.queued == stats.queued_bytes == 0 for stats in ledgers)
        assert all(client.inbox.balance() == 0 for client in self.clients)
        assert all(broker.stats.balance() == 0 for broker in self.brokers)


def free_urls(count: int) -> list[str]:
    """Return URLs with free ports, for brokers that must know each other's before they open."""
    return [f"tcp://127.0.0.1:{free_port()}" for _ in range(count)]


def kill(client: Client) -> None:
    """End as by kill -9: close every descriptor, and send nothing."""
    node = client.node
    node.published.clear()
    node.subscriptions.clear()
    client.close()


async def delivered(pub: Client, sub: Client, pattern: Iterable[int] = (1, 2)) -> None:
    """Check that a new message arrives, even if earlier ones were lost."""
    while sub.receive_nowait() is not None:
        pass

    async def publish() -> None:
        while True:
            await pub.publish(tuple(pattern), b"now")
            await asyncio.sleep(0.005)

    task = asyncio.create_task(publish())
    try:
        async with asyncio.timeout(20):
            assert (await sub.receive()).data == b"now"
    finally:
        task.cancel()
