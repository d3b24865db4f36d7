"""The modern face: a client of the TMQ system on asyncio."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from bus.errors import LinkError
from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.tmq.address import endpoint, written
from bus.tmq.client.inbox import Inbox, Item
from bus.tmq.client.node import ClientNode
from bus.tmq.options import Options
from bus.tmq.wire import PUBLISH, SUBSCRIBE, Address, Tokens
from bus.wire.frame import SUB, pack
from bus.wire.pattern import Pattern

Names = str | int | Iterable[str | int]
LINGER_S = 1.0
_YIELD = 64  # messages published in a row: then the loop gets to write them


def pattern_of(names: Names) -> Pattern:
    """Return a pattern from one name or several. Raises `TokenError`."""
    if isinstance(names, Pattern):
        return names
    return Pattern(*((names,) if isinstance(names, (str, int)) else names))


class Client:
    """A TMQ client on asyncio: publishes and subscribes by pattern, and knows only the brokers' addresses.

    ```
    async with Client(brokers=["gw-a:9942", "gw-b:9942"]) as client:
        await client.subscribe(("fridge", "temp"))
        await client.publish(("fridge", "alert"), b"open")
        async for pattern, data in client: ...
    ```
    `listen`: where publishers reach us. `queue_messages` received messages wait; beyond, the oldest are
    dropped. `wait_s` bounds how long `subscribe` and `publish` wait for a broker; without one they go on, and
    the client registers as soon as one answers. `options` are fields of `Options`. `on_bridge(frame,
    connection)` gets packets with the type bit BRIDGE. Raises `LinkError` for addresses that cannot be.
    """

    def __init__(
        self,
        brokers: Iterable[str | Address],
        listen: str | Address = ("", 0),
        queue_messages: int = 4096,
        wait_s: float = 2.0,
        on_bridge: Callable[[bytes, Connection], object] | None = None,
        **options: Any,
    ) -> None:
        known = [written(broker) for broker in brokers]
        self._node = ClientNode(endpoint(listen), known, Options(**options), on_bridge)
        self._wait_s = wait_s
        self._filled = asyncio.Event()  # or closed
        self._inbox = Inbox(queue_messages, self._filled.set)
        self._open = False
        self._sent = 0
        self._declared: dict[Pattern, asyncio.Future[None]] = {}

    async def __aenter__(self) -> "Client":
        self.open(asyncio.get_running_loop())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Listen, and begin to reach a broker; never blocks. Raises `LinkError` if it cannot listen."""
        self._node.open(loop)
        self._open = True

    @property
    def node(self) -> ClientNode:
        """The loop-level client behind this one. Raises `LinkError` unless the client is open."""
        if not self._open:
            raise LinkError("the client is not open: use it within `async with`")
        return self._node

    @property
    def address(self) -> Address:
        """The address where the client listens."""
        return self.node.address

    @property
    def broker(self) -> Address | None:
        """The address of the broker in use; None while none answers."""
        return self._node.uplink.broker

    @property
    def stats(self) -> Stats:
        """The ledger of sent messages, a copy a subscriber; `received` and `rejected` count the input."""
        return self._node.stats

    @property
    def inbox(self) -> Stats:
        """The ledger of received messages: offered = taken (`sent`) + dropped + queued."""
        return self._inbox.stats

    async def subscribe(self, pattern: Names) -> bool:
        """Receive all messages whose pattern starts with `pattern`; `()` is all.

        Return whether a broker knows of it by now. It does not if none answers, or if it refuses that: then
        `refusal` says why.
        """
        tokens = pattern_of(pattern)
        self.node.subscribe(tokens, self._inbox)
        return await self._settled() and not self.node.refusal(SUBSCRIBE, tokens)

    async def unsubscribe(self, pattern: Names) -> bool:
        """Take a subscription back; no error if there is none."""
        self.node.unsubscribe(pattern_of(pattern))
        return await self._settled()

    async def publish(self, pattern: Names, data: bytes | None = None) -> bool:
        """Declare `pattern`, if it is new, and send `data` to its subscribers, if given.

        Once a pattern is declared, its subscribers of the moment are known, so the first message reaches
        them. Return True if the data was sent or queued for all of them; False if no broker has answered yet,
        or it refuses the pattern: then `refusal` says why. Raises `TokenError`, `FrameError`, and `TypeError`
        for data that are not bytes.
        """
        tokens = pattern_of(pattern)
        if tokens not in self._declared:
            self.node.publish(tokens)
            self._declared[tokens] = self.node.settled()
            await asyncio.wait([self._declared[tokens]], timeout=self._wait_s)
        if data is not None:
            self.send(tokens, data)
            self._sent += 1
            if not self._sent % _YIELD:
                await asyncio.sleep(0)
        return _is_done(self._declared.get(tokens)) and not self.node.refusal(PUBLISH, tokens)

    def refusal(self, pattern: Names) -> str:
        """Return why the broker in use refuses to register a pattern, or this client; "" if it does not."""
        return self.node.refusal_of(pattern_of(pattern))

    def send(self, tokens: Tokens, data: bytes) -> None:
        """Send to the subscribers of a declared pattern without waiting: queue, or count a drop."""
        self.node.send(tokens, (pack(SUB, tokens, data),))

    async def unpublish(self, pattern: Names) -> bool:
        """Take a declaration back; no error if there is none."""
        tokens = pattern_of(pattern)
        self.node.unpublish(tokens)
        self._declared.pop(tokens, None)
        return await self._settled()

    async def _settled(self) -> bool:
        done, _ = await asyncio.wait([self.node.settled()], timeout=self._wait_s)
        return bool(done)

    def subscribers(self, pattern: Names) -> list[Address]:
        """Return the addresses that get what we publish under exactly this pattern."""
        return list(self.node.published.get(pattern_of(pattern), ()))

    async def receive(self) -> Item:
        """Return the next message; cancelling loses nothing. Raises `LinkError` once closed and empty."""
        while (item := self._inbox.take()) is None:
            if not self._open:
                raise LinkError("the client is closed, and all received messages are read")
            self._filled.clear()
            await self._filled.wait()
        return item

    def receive_nowait(self) -> Item | None:
        """Return the next message, None if there is none."""
        return self._inbox.take()

    def __aiter__(self) -> "Client":
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except LinkError:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close once sent messages have left, or after a second. Idempotent."""
        try:
            if self._open:
                await self._node.flushed(LINGER_S)
        finally:
            self.close()

    def close(self) -> None:
        """Take all registrations back and disconnect; iterating ends after the received messages.

        Messages that have not left are dropped and counted. Idempotent.
        """
        if self._open:
            self._open = False
            self._node.close()
        self._filled.set()


def _is_done(future: asyncio.Future[None] | None) -> bool:
    return future is not None and future.done() and not future.cancelled()
