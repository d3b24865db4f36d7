"""The classic face: the functions of the 2015 reference, for programs without asyncio.

A context is one background thread with an event loop; its sockets live there. The functions may be called
from any thread, and wait for that loop alone, never for a peer (docs/tmq.md says where they differ from the
reference).
"""

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Any, TypeVar

from bus.errors import ForkedError, LinkError
from bus.ledger import Stats
from bus.tmq.address import endpoint
from bus.tmq.broker import Broker
from bus.tmq.client import ClientNode, Inbox, Item, Names, pattern_of
from bus.tmq.options import Options
from bus.tmq.wire import PUBLISH, SUBSCRIBE, Address
from bus.wire.frame import BRIDGE, BROKER, SUB, pack
from bus.wire.pattern import Pattern

TMQ_CLIENT, TMQ_BROKER, TMQ_BRIDGE = 0x00, BROKER, BRIDGE
_CALL_S = 10.0
_OUTGOING = 8192
_WAIT_S = 1.0
T = TypeVar("T")


class Context(contextlib.AbstractContextManager["Context"]):
    """The background thread of all sockets made in it. `with tmq_init() as context:` closes them."""

    def __init__(self) -> None:
        self.sockets: list[Socket] = []
        self.loop, self._pid = asyncio.new_event_loop(), os.getpid()
        self._thread = threading.Thread(target=self._run, name="tmq", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function` on the loop, and wait for its result."""

        async def run() -> T:
            return function(*arguments)

        self.check()
        return self.wait(run())

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_CALL_S)

    @property
    def forked(self) -> bool:
        """Whether this is the child of a fork, where the thread does not run."""
        return os.getpid() != self._pid

    def check(self) -> None:
        """Raise `ForkedError` in the child of a fork."""
        if self.forked:
            raise ForkedError("TMQ context")

    def close(self) -> None:
        """Close all sockets and end the thread. Idempotent."""
        if self.forked or self.loop.is_closed() or not self._thread.is_alive():
            return
        for socket in tuple(self.sockets):
            socket.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CALL_S)

    def __exit__(self, *_: object) -> None:
        self.close()


class Socket(contextlib.AbstractContextManager["Socket"]):
    """A TMQ socket of role TMQ_CLIENT, TMQ_BROKER or TMQ_BRIDGE, made by `tmq_socket`.

    `queue_messages` received messages wait for each subscription; beyond, the oldest are dropped and counted.
    `options` are the fields of `bus.tmq.Options`. Raises `TypeError` for another role, as the reference does.
    """

    def __init__(
        self, context: Context, role: int = TMQ_CLIENT, queue_messages: int = 4096, **options: Any
    ) -> None:
        if role not in (TMQ_CLIENT, TMQ_BROKER, TMQ_BRIDGE):
            raise TypeError(f"role {role!r}: TMQ_CLIENT, TMQ_BROKER or TMQ_BRIDGE")
        self.context, self.role, self.queue_messages = context, role, queue_messages
        self.stats = Stats()
        self._options = Options(**options)
        self._listen: Address | None = None
        self._brokers: list[Address] = []
        self._node: ClientNode | None = None
        self._broker: Broker | None = None
        self._inboxes: dict[Pattern, Inbox] = {}
        self._outgoing: deque[tuple[Pattern, bytes]] = deque()
        self._room = threading.Condition()
        self._closed = False
        context.sockets.append(self)

    @property
    def address(self) -> Address | None:
        """The address where the socket listens; None before `tmq_bind`."""
        if self._broker is not None:
            return self._broker.addresses[0]
        return self._node.address if self._node is not None else self._listen

    @property
    def broker(self) -> Address | None:
        """The address of the broker that answers; None while none does."""
        return self._node.uplink.broker if self._node is not None else None

    def node(self) -> ClientNode:
        """Return the client behind this socket. Raises `LinkError` where there is none yet, or never."""
        self.context.check()
        if self._closed:
            raise LinkError("the socket is closed")
        if self._node is None:
            if self.role == TMQ_BROKER:
                raise LinkError("a broker's socket does not publish or subscribe")
            raise LinkError("call tmq_bind and tmq_broker first")
        return self._node

    def bind(self, address: "str | Address", backlog: int = 0) -> None:
        """Listen at `address`; a broker's socket serves from now on. Raises `LinkError` with the address.

        `("", port)` listens on every interface, port 0 takes a free one (`socket.address`). `backlog` exists
        for the reference, and is ignored.
        """
        where = endpoint(address)
        if self._closed:
            raise LinkError("the socket is closed")
        self._listen = where
        if self.role == TMQ_BROKER:
            self._serve(where)
        elif self._brokers:
            self.context.call(self._open, where)

    def _serve(self, address: Address) -> None:
        if self._broker is not None:
            self.context.call(self._broker.close)
        self._broker = broker = Broker([address], **asdict(self._options))
        self.context.call(broker.open, self.context.loop)

    def use_brokers(self, *brokers: "str | Address") -> None:
        """Name the brokers, best first. The first that answers is used, the next one while it is dead."""
        if not brokers:
            raise ValueError("name at least one broker")
        if self.role == TMQ_BROKER:
            raise LinkError("a broker's socket has no broker")
        self._brokers = [endpoint(broker) for broker in brokers]
        if self._listen is not None:
            self.context.call(self._open, self._listen)

    def _open(self, listen: Address) -> None:
        """Replace the node by a new one, which makes the same registrations."""
        old, self._node = self._node, None
        if old is not None:
            old.close()
        node = ClientNode(listen, self._brokers, self._options)
        node.open(self.context.loop)
        node.stats.add(self.stats)
        self._node, self.stats, self._listen = node, node.stats, node.address
        for tokens in old.published if old is not None else ():
            node.publish(tokens)
        for pattern, inbox in self._inboxes.items():
            node.subscribe(pattern, inbox)

    def subscribe(self, pattern: Names) -> bool:
        """Receive all messages whose pattern starts with `pattern`; `()` is all. Repeating it is no error.

        Return whether a broker knows of it by now. One that refuses it is logged; `tmq_refusal` says why.
        """
        node, made = self.node(), pattern_of(pattern)
        if made not in self._inboxes:
            inbox = self._inboxes[made] = Inbox(self.queue_messages)
            self.context.call(node.subscribe, made, inbox)
        return self._settle(node) and not node.refusal(SUBSCRIBE, made)

    def unsubscribe(self, pattern: Names) -> None:
        """Take a subscription back. Messages received for it and not read are lost."""
        made = pattern_of(pattern)
        if self._inboxes.pop(made, None) is not None:
            self.context.call(self.node().unsubscribe, made)
            self._settle(self.node())

    def publish(self, pattern: Names) -> bool:
        """Declare a pattern. On return the subscribers are known, or no broker answered for a second.

        Return whether a broker knows of it by now, as `tmq_subscribe` does. Raises `TokenError` for the empty
        pattern. Publishing again is no error.
        """
        node, made = self.node(), pattern_of(pattern)
        if made not in node.published:
            self.context.call(node.publish, made)
        return self._settle(node) and not node.refusal(PUBLISH, made)

    def refusal(self, pattern: Names) -> str:
        """Return why the broker in use refuses to register a pattern, or this client; "" if it does not."""
        return self.context.call(self.node().refusal_of, pattern_of(pattern))

    def unpublish(self, pattern: Names) -> None:
        """Take a declaration back."""
        self.context.call(self.node().unpublish, pattern_of(pattern))
        self._settle(self.node())

    def _settle(self, node: ClientNode) -> bool:
        """Wait a second at most until a broker has answered. Return whether it has."""

        async def settled() -> bool:
            done, _ = await asyncio.wait([node.settled()], timeout=_WAIT_S)
            return bool(done)

        return self.context.wait(settled())

    def send(self, pattern: Names, data: bytes, flags: int = 0) -> int:
        """Send to all subscribers of a published pattern; return 1. Never waits for a peer.

        What a peer does not take is queued within `Options.queue_bytes`, then dropped and counted in
        `socket.stats`. Raises `ValueError` for a pattern that is not published, `FrameError` above 2048
        bytes, `TypeError` for data that are not bytes. `flags` exist for the reference, and are ignored.
        """
        made = pattern_of(pattern)
        if not made:
            raise ValueError("nothing can be sent to the empty pattern: name at least one token")
        if made not in self.node().published:
            raise ValueError(f"{made} is not published: call tmq_publish first")
        frame = pack(SUB, made, data)
        with self._room:
            if len(self._outgoing) >= _OUTGOING:
                self._room.wait_for(lambda: len(self._outgoing) < _OUTGOING or self._closed, _WAIT_S)
            self._outgoing.append((made, frame))
            first = len(self._outgoing) == 1
        if first:
            self.context.loop.call_soon_threadsafe(self._drain)
        return 1

    def _drain(self) -> None:
        with self._room:
            batch, self._outgoing = self._outgoing, deque()
            self._room.notify_all()
        runs: dict[Pattern, list[bytes]] = {}
        for pattern, frame in batch:
            runs.setdefault(pattern, []).append(frame)
        for pattern, frames in runs.items():
            if self._node is not None:
                self._node.send(pattern, frames)
            else:  # it could not listen at another address
                self.stats.offered += len(frames)
                self.stats.drop("closed", len(frames))

    def recv(self, pattern: Names, timeout: float = 0.0) -> bytes | None:
        """Return the oldest data of this subscription; None if there is none within `timeout` seconds."""
        item = self.recv_from(pattern, timeout)
        return None if item is None else item.data

    def recv_from(self, pattern: Names, timeout: float = 0.0) -> Item | None:
        """Receive as `tmq_recv` does; the result also has the whole pattern that the message was sent to."""
        self.context.check()
        made = pattern_of(pattern)
        if made not in self._inboxes:
            raise ValueError(f"{made} is not subscribed to: call tmq_subscribe first")
        return self._inboxes[made].take(timeout)

    def close(self) -> None:
        """Send what is queued, for a second at most, take all registrations back, and disconnect.

        Received messages stay available.
        """
        if self._closed or self.context.forked:
            return
        self._closed = True
        with contextlib.suppress(RuntimeError):
            self.context.wait(self._end())
        if self in self.context.sockets:
            self.context.sockets.remove(self)

    async def _end(self) -> None:
        if self._node is not None:
            await self._node.flushed(_WAIT_S)
            self._node.close()
        if self._broker is not None:
            self._broker.close()

    def __exit__(self, *_: object) -> None:
        self.close()
