"""A station: one link that a command opens to send and receive, with signals, waits and a ledger."""

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

from appliance.process.interrupts import STOPS, handled, status_of
from appliance.process.serve import DRAIN_S
from bus.client.waiting import UNCOUNTED_S
from bus.hub import Hub, Link, Pipe
from bus.ledger import Stats
from bus.transports.on_the_way import of_process_bytes
from bus.wire.batch import Batch, from_payloads, payloads

T = TypeVar("T")

_LOOK_S = 0.002
_REFUSAL_S = 0.25
_AHEAD_BYTES = 1 << 20  # the most that waits at a time, even if the link accepts more
MESSAGE_COST_BYTES = 32  # the most that framing adds to a message in any queue


class Leaf(Hub):
    """A hub that forwards nothing: `heard` collects what peers send, and what is published goes to all peers.

    `heard` needs no bound of its own: a station empties it each time the loop comes round.
    """

    __slots__ = ("heard", "woken")

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self.heard: deque[bytes] = deque()
        self.woken = asyncio.Event()

    def attach(self, pipe: Pipe) -> None:
        super().attach(pipe)
        self.woken.set()

    def detach(self, pipe: Pipe) -> None:
        super().detach(pipe)
        self.woken.set()

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        if origin is None:
            return super().publish(batch)
        origin.stats.receive(batch)
        for tap in self.taps:
            tap(batch, origin)
        self.heard.extend(payloads(batch))
        self.woken.set()
        return None

    def totals(self) -> Stats:
        """Return the sum of the counts of all peers so far."""
        total = Stats()
        for account in self.accounts().values():
            total.add(account.stats)
        return total


class Station:
    """A link opened for a block of code. SIGINT and SIGTERM end its waits; queued messages may still drain.

    `uncounted`: the transport does not count the messages it has written, so `drain` waits a moment.
    """

    def __init__(self, link: Link, uncounted: bool = False, announce: bool = False) -> None:
        self.link, self.leaf, self.stops = link, Leaf(link.name), 0
        self._uncounted, self._announce = uncounted, announce
        self._spoke_s = -inf
        self._signal, self._signals = 0, contextlib.ExitStack()
        self.ahead_bytes = min(link.queue_bytes, _AHEAD_BYTES)

    async def __aenter__(self) -> "Station":
        self._loop = loop = asyncio.get_running_loop()
        self.link.open(self.leaf, loop)
        self._signals.enter_context(
            handled(lambda number, _: loop.call_soon_threadsafe(self.stop, number), STOPS)
        )
        if self._announce:
            here = "waiting for" if self.link.state == "waiting" else "listening on"
            print(f"{here} {self.link.url}", file=sys.stderr, flush=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.link.close()
        self._signals.close()

    def stop(self, number: int) -> None:
        self.stops += 1
        self._signal = number
        self.leaf.woken.set()

    async def until(
        self, ready: Callable[[], object], limit_s: float = inf, look_s: float = inf, stops: int = 1
    ) -> bool:
        """Wait for `ready()` to be true. Return False if the limit or a signal to stop comes first.

        `ready` is called when peers or messages come, and every `look_s` seconds.
        """
        end_s = self._loop.time() + limit_s
        while not ready() and self.stops < stops and (left_s := end_s - self._loop.time()) > 0:
            self.leaf.woken.clear()
            pause_s = min(left_s, look_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if pause_s == inf else pause_s):
                    await self.leaf.woken.wait()
        return bool(ready())

    async def unless_stopped(self, work: Awaitable[T]) -> T | None:
        """Return the result of `work`; cancel it and return None if a signal comes first."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self.leaf.woken.set())
        if await self.until(task.done):
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return None

    async def peer(self, limit_s: float = inf) -> bool:
        """Wait until a peer is there, the device is open, or a broker answers; return whether one is."""
        return await self.until(lambda: self.leaf.pipes and self.link.state == "up", limit_s, _LOOK_S)

    async def room(self, cost_bytes: int, limit_s: float = inf) -> bool:
        """Wait until a peer is there and the slowest has room for `cost_bytes` more."""

        def has_room() -> bool:
            queued = max((pipe.stats.queued_bytes for pipe in self.leaf.pipes), default=None)
            return queued == 0 or (queued is not None and queued + cost_bytes <= self.ahead_bytes)

        return await self.until(has_room, limit_s, _LOOK_S)

    def say(self, messages: list[bytes]) -> None:
        """Send messages to all peers that are there, without waiting.

        Without a peer they count as dropped.
        """
        self._spoke_s = self._loop.time()
        self.leaf.publish(from_payloads(messages))

    def complain(self, command: str, text: str) -> int:
        """Print a complaint and return the exit status: 1, or that of a signal that asked to stop."""
        if self.stops:
            return self.cut_short()
        print(f"buscoupler {command}: {self.link.name}: {text}{because(self.link)}", file=sys.stderr)
        return 1

    def cut_short(self) -> int:
        """Return the exit status of a command that a signal stopped before its work was done."""
        return status_of(self._signal)

    async def hung_up(self) -> bool:
        """Return whether a server hung up, as one that is busy does a moment after it has accepted."""
        return await self.until(lambda: self.link.losses, _REFUSAL_S, _LOOK_S, self.stops + 1)

    async def drain(self, limit_s: float) -> bool:
        """Wait until no message is queued, or on the way to another machine. Return whether that is so.

        After a signal it waits for at most `DRAIN_S`, after two not at all.
        """
        limit_s = min(limit_s, DRAIN_S) if self.stops else limit_s
        if self._uncounted:
            await asyncio.sleep(max(0.0, self._spoke_s + UNCOUNTED_S - self._loop.time()))
        return await self.until(self._has_left, limit_s, _LOOK_S, self.stops + 1)

    def _has_left(self) -> bool:
        return not self.leaf.totals().queued and not of_process_bytes()


def because(link: Link) -> str:
    """Return the last fault of a link in brackets, to put behind a complaint; "" if there was none."""
    return f" ({link.fault})" if link.fault else ""
