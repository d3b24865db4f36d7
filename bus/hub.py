"""The hub, which is the raw bus: it sends a batch from one pipe to all the others.

This module also defines the two main interfaces of ARCHITECTURE.md: pipe and link.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

from bus.accounts import Accounts
from bus.ledger import Account, Stats
from bus.vacancy import Filter, Vacancy
from bus.wire.batch import Batch


class Pipe(Protocol):
    """A live peer. `send` never blocks, and never raises because of a fault of the peer.

    `link` is the name of the link that made the pipe, under which its counts are added up; it stays the same
    for all peers that connect there. `inner` is the pipe that this one wraps, if any. `accepted`: the peer
    connected to us, as anybody may. `is_leaf`: it leads to a part of this process that forwards nothing.
    `takes_late`: it knows the age of what it gets (`bus.lateness`). `is_there`: its peer is connected now.
    `came_ns`: the times at which the messages came that it publishes just now, in ns since 1970, where the
    kernel or an adapter told; else (). `is_watched`: another hub of this process has looked for loops in all
    that it brings. `answers`: it tells who sent a message what became of it, also if that never came to it
    (`turn_away`). Derive from this class: it has defaults for these nine, `turn_away` and `purge`.
    """

    __slots__ = ("__weakref__",)

    name: str
    stats: Stats
    link: str = ""
    inner: "Pipe | None" = None
    accepted: bool = False
    is_leaf: bool = False
    takes_late: bool = False
    is_there: bool = True
    came_ns: Sequence[int] = ()
    is_watched: bool = False
    answers: bool = False

    def send(self, batch: Batch) -> None:
        """Count `batch` as offered. Then send it, queue it (`batch.keep()`), or drop and count it."""

    def turn_away(self, messages: Sequence[bytes], reason: str) -> None:
        """Take note that messages were dropped on their way to this pipe, and counted there."""
        return None

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages that have not begun; count them by `reason` and return them in order.

        This default is for pipes that cannot take messages back: it closes the pipe if messages are waiting.
        """
        if self.stats.queued:
            self.close()
        return []

    def close(self) -> None:
        """Release the peer. Queued messages are dropped and counted. Idempotent."""


def chain(pipe: Pipe) -> Iterator[Pipe]:
    """Yield a pipe and the pipes that it wraps, the outermost first.

    Of pipes with one ledger, yield the last only.
    """
    one: Pipe | None = pipe
    while one is not None:
        if one.inner is None or one.inner.stats is not one.stats:
            yield one
        one = one.inner


def came_ns(pipe: Pipe | None) -> Sequence[int]:
    """Return when the messages came that a pipe, or the one inside it, publishes just now, in ns since 1970.

    Return () if that is not known. A stage may have taken some out: then there are more times than messages.
    """
    while pipe is not None and pipe.inner is not None:
        pipe = pipe.inner
    return () if pipe is None else pipe.came_ns


def arrived_ns(batch: Batch, pipe: Pipe | None, now_ns: int) -> Sequence[int]:
    """Return when each message came that a pipe publishes just now, in ns since 1970: now, if nobody told."""
    told = came_ns(pipe)
    return told if len(told) == batch.count else [now_ns] * batch.count


def counts_of(pipe: Pipe) -> Stats:
    """Return the counts of a whole chain of pipes, added up as the account of its link adds them up."""
    total, stages = Stats(), [stage.stats for stage in chain(pipe)]
    for stats in stages:
        total.add_stage(stats, stats is stages[0], stats is stages[-1])
    return total


Tap = Callable[[Batch, Pipe | None], None]
"""A function called with a batch and the pipe it is from or for. Copies what it keeps; never raises."""

Greeting = Callable[[], Iterable[Batch]]
"""A function that returns the batches that a new peer is sent before all others."""


class Hub:
    """A bus: the set of its pipes. Not thread-safe: use it on one event loop.

    `taps` are called with every published batch before it is sent. `passed` counts the messages that were
    published so far. A link that is open here drops what it is due while it has no pipe (`bus.vacancy`).
    """

    __slots__ = ("_accounts", "_greetings", "_looking", "name", "passed", "pipes", "taps")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.pipes: tuple[Pipe, ...] = ()
        self.taps: tuple[Tap, ...] = ()
        self.passed = 0
        self._accounts = Accounts()
        self._looking: tuple[Vacancy, ...] = ()
        self._greetings: dict[str, Greeting] = {}

    def attach(self, pipe: Pipe) -> None:
        self.pipes += (pipe,)
        self._accounts.enter(pipe, pipe.link, chain(pipe), self.passed)
        self._looking = self._accounts.looking()

    def detach(self, pipe: Pipe) -> None:
        """Remove a pipe. It is no error if the pipe is not attached."""
        self.pipes = without(self.pipes, pipe)
        self._accounts.leave(pipe, self.passed)
        self._looking = self._accounts.looking()

    def enlist(self, link: str, reason: str, filter: Filter | None = None) -> None:
        """Note that a link is open here: while it has no pipe, what it is due is dropped by `reason`.

        Every link calls this when it is opened, and `strike` when it is closed. `filter` is that of
        `Vacancies`.
        """
        self._accounts.enlist(link, reason, self.passed, filter)
        self._looking = self._accounts.looking()

    def strike(self, link: str) -> None:
        """Note that a link has closed. It is no error if none of that name is open."""
        self._accounts.strike(link, self.passed)
        self._looking = self._accounts.looking()

    def row(self, link: str) -> str:
        """Return the name of the account of a link that is opened here, such as `link` itself."""
        return link

    def miss(self, link: str, batch: Batch) -> None:
        """Count a batch that is for one link only, and is not published, if the link has no pipe."""
        self._accounts.miss(link, batch)

    def keep(self, link: str, stats: Stats) -> None:
        """Add counts that are of none of a link's pipes to the account of the link."""
        self._accounts.keep(link, stats)

    def fold(self, link: str, stats: Stats) -> None:
        """Forget a ledger of `keep` whose owner has ended. Its counts stay in the account of the link."""
        self._accounts.fold(link, stats)

    def inherit(self, old: "Hub", rename: Callable[[str], str]) -> None:
        """Continue the counts of a hub that this one replaces, whose pipes move here next.

        `rename` says how the links of that hub are called here.
        """
        self.passed = old.passed
        self._accounts.inherit(old.accounts(), rename)

    def greet(self, link: str, greeting: Greeting) -> None:
        """From now on, send every new peer of a link what `greeting()` returns, through its own pipe."""
        self._greetings[link] = greeting

    def ungreet(self, link: str) -> None:
        """Stop greeting new peers of a link. It is no error if none are greeted."""
        self._greetings.pop(link, None)

    def welcome(self, pipe: Pipe) -> None:
        """Greet the peer of a pipe that has just been attached, if peers of its link are greeted."""
        greeting = self._greetings.get(pipe.link)
        for batch in greeting() if greeting is not None else ():
            self.give(pipe, batch)

    def give(self, pipe: Pipe, batch: Batch) -> None:
        """Send a batch to one pipe only."""
        self.lend(pipe, batch.count)
        pipe.send(batch)

    def lend(self, pipe: Pipe, count: int) -> None:
        """Note that a pipe is about to be offered `count` messages that are not published."""
        self._accounts.lend(pipe.link, count)

    def note_waiting(self, pipe: Pipe, count: int) -> None:
        """Note that `count` messages that came in by a pipe wait in this hub; fewer if negative."""
        self._accounts.note_waiting(pipe, count)

    def accounts(self) -> Mapping[str, Account]:
        """Return the counts of each link's pipes since the hub was made, detached pipes included.

        It is the same object as long as nothing is counted. Nobody may change it.
        Do not call it from within a `send` or a `publish`: a batch is then half counted.
        """
        return self._accounts.read(self.passed)

    @property
    def holds(self) -> bool:
        """Whether messages that were published here may still wait to be passed on."""
        return False

    def tap(self, tap: Tap) -> None:
        """Call `tap` with every batch that is published from now on."""
        self.taps += (tap,)

    def untap(self, tap: Tap) -> None:
        """Stop calling `tap`. It is no error if it is not registered."""
        self.taps = tuple(other for other in self.taps if other is not tap)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Send `batch` to every pipe except `origin`, and count it as received from `origin`."""
        if origin is not None:  # `Stats.receive` inlined: a call costs 2 % of the path of a single message
            stats = origin.stats
            stats.received += batch.count
            stats.received_bytes += batch.size
        for tap in self.taps:
            tap(batch, origin)
        self.passed += batch.count
        pipes = self.pipes  # of this moment: a pipe that leaves meanwhile is offered the batch all the same
        for vacancy in self._looking:
            vacancy.look(batch)
        for pipe in pipes:
            if pipe is not origin:
                pipe.send(batch)


def without(pipes: tuple[Pipe, ...], pipe: Pipe) -> tuple[Pipe, ...]:
    """Return `pipes` without `pipe`."""
    return tuple(other for other in pipes if other is not pipe)


State = Literal["closed", "opening", "up", "waiting"]
"""The state of a link: not open; being opened; in use; waiting for a retry after a loss or failure."""


class LinkView(Protocol):
    """A link, as a status shows it."""

    @property
    def name(self) -> str:
        """The name in logs, ledgers and events; it stays the same over reopenings."""

    @property
    def url(self) -> str:
        """The address where the link listens or dials, with the bound port once it is open.

        Other links: the name.
        """

    @property
    def state(self) -> State:
        """The state of the link.

        A listening link is up while it listens; others, while their peer or device is there.
        """

    @property
    def condition(self) -> str:
        """The state of the medium in its own words, such as `bus-off`; "" for a medium that has none."""

    @property
    def fault(self) -> str:
        """The last fault as text; "" if there was none."""

    @property
    def losses(self) -> int:
        """The number of connections or openings that ended after they were up, except by `close`."""

    @property
    def queue_bytes(self) -> int:
        """The bound of the queue to each peer, in bytes."""


class Link(LinkView, Protocol):
    """A configured endpoint that listens, dials or opens a device. It reconnects by itself."""

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Enlist at the hub and start without blocking. Later faults are a state with retries, no exception.

        Raises `LinkError` only for what can never work: a bad address, or a port that is taken.
        """

    def revise(self, other: "Link") -> bool:
        """Take over the bounds and the policy of the queue from `other`, which is not open, between batches.

        `other` leads to the same place and differs in nothing else. Return False if the change takes a new
        opening; this link is of no use then, and is to be closed.
        """

    def close(self) -> None:
        """Stop the link, close all its pipes, and have the hub strike it, before returning. Idempotent."""


class Retrying:
    """The base class of links that try again and again to reach what may be there for one gateway only."""

    def hurry(self) -> None:
        """Try at once if the link waits for its next attempt: another gateway may have let go."""
        raise NotImplementedError
