"""The pair that the suite tests: two hubs with a medium between them, and the faults of that medium."""

import asyncio
import random
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bus.balance import imbalances
from bus.hub import Hub, Link, Pipe
from bus.ledger import Account, Stats
from tests.bridges.support import RecordingPipe, frame, say
from tests.helpers.ledgers import falls
from tests.helpers.peers import until

Action = Callable[[], Awaitable[None]]


class LedgerHub(Hub):
    """A hub that remembers each pipe that was ever on it, and the ledgers that a link keeps there."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seen: list[Pipe] = []
        self.kept: list[Stats] = []

    def keep(self, link: str, stats: Stats) -> None:
        super().keep(link, stats)
        self.kept.append(stats)

    def fold(self, link: str, stats: Stats) -> None:
        super().fold(link, stats)
        self.kept.remove(stats)

    def attach(self, pipe: Pipe) -> None:
        super().attach(pipe)
        if not isinstance(pipe, RecordingPipe) and pipe not in self.seen:
            self.seen.append(pipe)

    @property
    def ledgers(self) -> list[Stats]:
        """Return each ledger once: the pipes of a device share the one of their link."""
        return list({id(pipe.stats): pipe.stats for pipe in self.seen}.values())


class Side:
    """One end: a hub, a pipe on it that keeps what the medium brings, and a link.

    `once`: the link can be opened only once; opening again makes another link.
    """

    def __init__(self, name: str, make: Callable[[], Link] | None = None, once: bool = False) -> None:
        self.hub = LedgerHub(name)
        self.heard = RecordingPipe(name)
        self.other = RecordingPipe("another peer")
        self.hub.attach(self.heard)
        self.hub.attach(self.other)
        self._make, self._once = make, once
        self.link: Link | None = None
        self.accounts: Mapping[str, Account] = {}

    def made(self) -> Link:
        """Return another link like ours, not yet open."""
        assert self._make is not None
        return self._make()

    def open(self) -> None:
        """Open the link."""
        if self.link is None or self._once:
            self.link = self.made()
        self.link.open(self.hub, asyncio.get_running_loop())

    def close(self) -> None:
        if self.link is not None:
            self.link.close()

    @property
    def up(self) -> bool:
        """Return whether a pipe of the medium is on the hub."""
        return len(self.hub.pipes) > 2

    def say(self, *messages: bytes) -> None:
        """Send messages to the medium as if from `heard`, which does not keep its own."""
        say(self.hub, self.heard, *messages)

    def count(self, name: str) -> int:
        """Return a field of the ledger, summed over all pipes."""
        return sum(getattr(stats, name) for stats in self.hub.ledgers)

    def reasons(self, name: str) -> dict[str, int]:
        """Return `dropped` or `rejected`, summed over all pipes."""
        total: dict[str, int] = {}
        for stats in self.hub.ledgers:
            for reason, count in getattr(stats, name).items():
                total[reason] = total.get(reason, 0) + count
        return total


@dataclass
class Pair:
    """Two sides and their faults. `garbage` sends invalid bytes to `near`. `cut` ends `far`, or another peer
    of `near`, in the middle of a frame; `mend` brings it back, and then it sends `back`. `loses`: a side
    whose link can lose its device or connection, the action that does it, and the one that restores it."""

    near: Side
    far: Side
    clog: Callable[[], None] = lambda: None
    garbage: Action | None = None
    cut: Action | None = None
    mend: Action | None = None
    ready: Callable[[], bool] = lambda: True
    closers: list[Callable[[], None]] = field(default_factory=list)
    back: list[bytes] = field(default_factory=list)
    loses: tuple[Side, Action, Action] | None = None

    async def up(self) -> None:
        await until(lambda: self.ready() and self.near.up and self.far.up)

    def close(self) -> None:
        self.near.close()
        self.far.close()
        for closer in reversed(self.closers):
            closer()

    def check_ledger(self) -> None:
        """Check that every offered message is sent, dropped for a reason, or queued, at any moment.

        The same holds for the account of each link, whose counters never fall.
        """
        for side in (self.near, self.far):
            assert [stats.balance() for stats in side.hub.ledgers] == [0] * len(side.hub.ledgers)
            assert imbalances([side.hub]) == []
            before, side.accounts = side.accounts, side.hub.accounts()
            assert falls(before, side.accounts) == []


@dataclass
class Maker:
    """A maker of pairs of one link. `pair(path)` makes one, with both sides open, and may use `path`, where
    nothing is yet, for a file or a folder; `clogged(path)` makes one whose `clog` stops the far end.
    `mtu`: the largest frame that crosses in one piece; `window`: how many messages can be in flight at once
    where nothing slows the sender; `make(size, seed)`: a frame that it can carry, with `tokens_min` tokens at
    least; `token_step`: of the numbers of tokens, every how many is tried (17 leads to 255); `share`: which
    part of the messages in a row is enough; `sizes(size)`: a message of that size; `left_out`: tests that do
    not apply, and why; `missing`: why this machine cannot run it, "" if it can.
    """

    name: str
    mtu: int
    pair: Callable[[Path], Pair]
    clogged: Callable[[Path], Pair] | None = None
    simulated: bool = False
    window: int = 1 << 20
    make: Callable[..., bytes] = frame
    tokens_min: int = 0
    token_step: int = 1
    share: float = 1.0
    sizes: Callable[[int], bytes] = frame
    left_out: dict[str, str] = field(default_factory=dict)
    missing: Callable[[], str] = lambda: ""

    def __str__(self) -> str:
        return self.name


def noise(size: int, seed: int = 1) -> bytes:
    """Return random bytes, the same each time."""
    return random.Random(seed).randbytes(size)


class Relay:
    """A relay of the bytes of each descriptor to all others, like a null modem or a hub of serial lines.

    `hold`: descriptors that are not read, so that their writers clog.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[int, bytearray] = {}
        self._write: dict[int, Callable[[bytes], int]] = {}
        self._read: dict[int, Callable[[], bytes]] = {}
        self.hold: set[int] = set()

    def join(self, fd: int, read: Callable[[], bytes], write: Callable[[bytes], int]) -> None:
        self._waiting[fd], self._read[fd], self._write[fd] = bytearray(), read, write
        if fd not in self.hold:
            self._loop.add_reader(fd, self._on_readable, fd)

    def leave(self, fd: int) -> None:
        self._waiting.pop(fd, None)
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    @property
    def members(self) -> list[int]:
        return list(self._waiting)

    def stop_reading(self, fd: int) -> None:
        self.hold.add(fd)
        self._loop.remove_reader(fd)

    def _on_readable(self, fd: int) -> None:
        try:
            data = self._read[fd]()
        except OSError:
            data = b""
        if not data:
            return self.leave(fd)
        for other in self.members:
            if other != fd:
                self.inject(other, data)

    def inject(self, fd: int, data: bytes) -> None:
        """Send bytes to one member, after those that already wait for it."""
        self._waiting[fd] += data
        self._flush(fd)

    def _flush(self, fd: int) -> None:
        waiting = self._waiting[fd]
        self._loop.remove_writer(fd)
        try:
            del waiting[: self._write[fd](bytes(waiting[:65536]))]
        except BlockingIOError:
            pass
        except OSError:
            return self.leave(fd)
        if waiting:
            self._loop.add_writer(fd, self._flush, fd)

    def close(self) -> None:
        for fd in self.members:
            self.leave(fd)
