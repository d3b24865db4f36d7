"""The journal of a bus on an event loop: written and read in one thread, and its ends hear of the outcome.

Messages gather while the thread works, so one sync is for all of them. A journal that cannot be opened or
written is a state: messages are live only meanwhile, and the next attempt follows.
"""

import logging
import time
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from bridges.durable.decline import Decline
from bridges.durable.end import FOR_OTHERS, KEPT, End
from bridges.durable.receiver import Mark, Memory, Taken
from bridges.durable.sender import Sender
from bridges.durable.settings import Durable
from bridges.durable.wire import EndName
from bridges.durable.work import (
    Acknowledge,
    Acknowledged,
    EndState,
    Offered,
    Opened,
    Told,
    Worked,
    groups_of,
    kept_of,
    looked,
    opened,
    written,
)
from bus.errors import words_of
from bus.journal.files import Files
from bus.journal.journal import Backlog, Journal, Read
from bus.journal.ranges import Range
from bus.journal.record import Record
from bus.wire.batch import Batch

T = TypeVar("T")
log = logging.getLogger("buscoupler.bridges")

AGAIN_S: Final = 1.0
TICK_S: Final = 1.0
TOLD_MAX: Final = 65_536
"""Records that came while the journal does not work; older ones are not acknowledged, and come again."""
PENDING_BYTES_MAX: Final = 16 << 20
"""Bytes that wait for the thread; more are live only."""
_ROOM_S: Final = 0.02  # between two looks whether a connection has room


class House:
    """The journal of one bus, and its ends.

    `name` is that of this end; `gateways` are those for which the journal is kept. `fault` says why the last
    messages were not taken, "" if they were; until it has opened, they wait. `losses` counts such times after
    it was open. `memory` is there once it is open. `backlogs` are what is kept for each gateway, as of the
    last look, and `declines` how they get less.
    """

    _loop: AbstractEventLoop

    def __init__(
        self,
        name: EndName,
        settings: Durable,
        gateways: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        unix_s: Callable[[], float] = time.time,
        files: Files | None = None,
    ) -> None:
        self.name, self.settings, self.gateways = name, settings, tuple(gateways)
        self.fault, self.losses = "", 0
        self._takes = True
        self.memory: Memory | None = None
        self.backlogs: Mapping[str, Backlog] = {}
        self.declines = {one: Decline() for one in self.gateways}
        self._ends: dict[str, End] = {}
        self._senders: dict[str, Sender] = {}  # of all gateways, whether their links are open or not
        self._clock, self._unix_s, self._files = clock, unix_s, files
        self._opened: Opened | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._offered, self._told = list[Offered](), list[Told]()
        self._pending_bytes = 0
        self._passing: Taken | None = None
        self._held = list[Taken]()
        self._news = dict[str, Sender]()
        self._when_open = list[Callable[[], None]]()
        self._timers = dict[str, TimerHandle]()
        self._is_committing = False
        self._last_commit_s = float("-inf")
        self._losses: Mapping[str, Mapping[str, int]] = {}

    @property
    def ends(self) -> list[End]:
        """The ends whose links are open."""
        return list(self._ends.values())

    @property
    def now_ms(self) -> int:
        """The time of day, in ms since 1970."""
        return int(self._unix_s() * 1000)

    @property
    def journal_id(self) -> int:
        """The id of the journal; 0 while it is not open."""
        return 0 if self._opened is None else self._opened.journal.id

    def open(self, loop: AbstractEventLoop) -> None:
        """Open the journal in the thread. Idempotent."""
        if self._thread is None:
            self._loop, self._thread = loop, ThreadPoolExecutor(1, "journal")
            self._try()

    def _run(self, work: Callable[[], T], done: "Callable[[Future[T]], None]") -> None:
        """Do work in the thread, then call `done` with the outcome, unless the house has closed meanwhile."""

        def finished(future: "Future[T]") -> None:
            if not future.cancelled():
                future.exception()  # an error that nobody looks at is logged
                if self._thread is not None:
                    done(future)

        if self._thread is not None:
            self._loop.run_in_executor(self._thread, work).add_done_callback(finished)

    def _later(self, name: str, delay_s: float, call: Callable[[], None]) -> None:
        self._timers[name] = self._loop.call_later(delay_s, call)

    def _try(self) -> None:
        settings = self.settings
        journal = Journal(
            settings.directory,
            self.name,
            settings.bytes,
            int(settings.age_h * 3600),
            self.gateways,
            files=self._files,
            clock=self._clock,
            wall=self._unix_s,
        )
        self._run(partial(opened, journal, self.gateways), self._on_open)

    def _on_open(self, future: "Future[Opened]") -> None:
        error = future.exception()
        if error is not None:
            return self._fail(words_of(error), self._try)
        found = self._opened = future.result()
        self.memory = Memory(found.journal.id, found.known)
        self._losses, self.fault, self._takes = found.journal.losses, "", True
        self._senders = {name: self._sender(state, found) for name, state in found.ends.items()}
        for end in self._ends.values():
            end.begin(self._senders[end.gateway])
        for call in self._when_open:
            call()
        self._tick()
        return self._pump()

    def _fail(self, fault: str, again: Callable[[], None]) -> None:
        """Note why the journal takes nothing, and say so once; what waits for it is live only."""
        if fault != self.fault:
            log.error("bus %s: no journal, so messages are live only: %s", self.name.bus, fault)
            self.losses += self._opened is not None and not self.fault
        self.fault, self._takes = fault, False
        offered, self._offered, self._pending_bytes = self._offered, [], 0
        for one in offered:
            one.settle(False)
        self._later("again", AGAIN_S, again)

    def _tick(self) -> None:
        """Have the journal drop what is too old, and look at what it keeps."""
        if self._opened is not None:
            work = partial(looked, self._opened.journal, self._take_news(), self.gateways)
            self._run(work, self._ticked)

    def _take_news(self) -> Acknowledged:
        """Return what ends have acknowledged, of those from whom there is news since the last call."""
        news, self._news = self._news, {}  # also from ends whose links have closed since
        return {name: list(sender.acknowledged) for name, sender in news.items()}

    def _ticked(self, future: "Future[Worked]") -> None:
        if error := future.exception():
            log.warning(
                "bus %s: the journal cannot note what is acknowledged: %s", self.name.bus, words_of(error)
            )
        else:
            self.backlogs, now_s = future.result().backlogs, self._clock()
            for name, backlog in self.backlogs.items():
                self.declines[name].note(now_s, backlog.messages)
            self._note(future.result())
        self._later("tick", TICK_S, self._tick)

    def _note(self, worked: Worked) -> None:
        """Count what ends have lost since the last look."""
        for name, end in self._ends.items():
            before = self._losses.get(name, {})
            for reason, count in worked.losses.get(name, {}).items():
                end.gave_up(count - before.get(reason, 0), reason)
        self._losses = worked.losses

    def when_open(self, call: Callable[[], None]) -> None:
        """Call a function when the journal has opened, if it has not."""
        self._when_open.append(call)

    def enter(self, end: End) -> None:
        """Keep for an end whose link has opened."""
        self._ends[end.gateway] = end
        if self._opened is not None:
            end.begin(self._senders[end.gateway])

    def _sender(self, state: EndState, found: Opened) -> Sender:
        settings = self.settings
        return Sender(state.acknowledged, found.journal.next, settings.catch_up, settings.order == "fifo")

    def leave(self, end: End) -> None:
        """Forget an end whose link has closed. What is kept for it stays in the journal."""
        if self._ends.get(end.gateway) is end:
            del self._ends[end.gateway]
        end.gave_up(end.files.queued, KEPT)

    # What goes into the journal.

    def offer(self, end: End, batch: Batch) -> None:
        """Take messages that an end is due. A batch that several are due is journaled once."""
        if not self._takes or self._pending_bytes + len(batch.data) > PENDING_BYTES_MAX:
            return end.settle(batch, False)
        last = self._offered[-1] if self._offered else None
        if last is not None and last.batch is batch:
            self._offered[-1] = last._replace(ends=(*last.ends, end))
            return None
        self._offered += self._identified(batch, end)
        self._pending_bytes += len(batch.data)
        return self._pump()

    def _identified(self, batch: Batch, end: End) -> list[Offered]:
        """Return a batch with who numbered it first: another journal, if it is passing through the bus."""
        batch.keep()
        for taken in self._held if self._passing is None else (self._passing,):
            parts = taken.identified(batch)
            if self._passing is not None or any(origin for _, origin in parts):
                time_ms = self.now_ms - taken.age_ms
                return [Offered(part, (end,), origin, time_ms) for part, origin in parts]
        return [Offered(batch, (end,), None, self.now_ms)]

    def passing(self, taken: Taken | None) -> None:
        """Say which messages of another journal pass through the bus now, in this very call."""
        self._passing = taken

    def held(self, taken: Taken, is_held: bool) -> None:
        """Say whether the bus may hold messages of another journal back, and pass them later."""
        self._held = [one for one in self._held if one is not taken]
        if is_held:
            self._held.append(taken)

    def tell(self, told: Told) -> None:
        """Remember numbers, and acknowledge them when this is on disk."""
        self._told.append(told)
        self._pump()

    def _pump(self) -> None:
        """Plan a commit, if there is something for it, the thread is free, and the last was not just now.

        It never begins at once: other ends are offered the same batch next, and it is to be journaled once.
        """
        is_planned = self._is_committing or "commit" in self._timers
        if self._opened is not None and not is_planned and (self._offered or self._told):
            wait_s = self._last_commit_s + self.settings.sync_ms / 1000 - self._clock()
            self._later("commit", max(0.0, wait_s), self._commit)

    def _commit(self) -> None:
        self._timers.pop("commit", None)
        found = self._opened
        if found is None or self._is_committing:
            return
        offered, told = self._offered, self._told
        self._offered, self._told, self._pending_bytes = [], [], 0
        self._is_committing, self._last_commit_s = True, self._clock()
        self._run(self._work(found, offered, told), partial(self._committed, offered, told))

    def _work(self, found: Opened, offered: list[Offered], told: list[Told]) -> Callable[[], Worked]:
        """Return the call that writes."""
        marks = [mark for one in told for mark in one.marks]
        return partial(written, found.journal, self._take_news(), groups_of(offered, found.ends), marks)

    def _committed(self, offered: list[Offered], told: list[Told], future: "Future[Worked]") -> None:
        self._is_committing = False
        error = future.exception()
        if error is not None:
            self._told = [*told, *self._told][-TOLD_MAX:]  # nothing of it is acknowledged
            for one in offered:
                one.settle(False)
            return self._fail(words_of(error), self._recover)
        worked, self.fault = future.result(), ""
        for one in offered:
            one.settle(True)
        self._note(worked)
        self._send(worked.records)
        for acknowledge, marks in _by_call(told).items():
            acknowledge(marks)
        return self._pump()

    def _recover(self) -> None:
        """Try to write again; the next commit tells whether that works."""
        self._takes = True
        self._pump()

    def _send(self, records: list[Record]) -> None:
        """Give new records to the ends that are connected."""
        found = self._opened
        if found is None or not records:
            return
        for name, sender in self._senders.items():
            end, kept = self._ends.get(name), kept_of(records, found.ends[name].bit)
            messages = list(sender.committed(kept, self.now_ms, 0 if end is None else end.room_bytes))
            if end is not None:
                end.say(messages)
                self.catch_up(end)

    # What comes out of it.

    def heard(self, end: End, ranges: Sequence[Range]) -> None:
        """Take what an end says that it has: the first time on a connection, this begins the exchange."""
        found, sender = self._opened, end.sender
        if found is None or sender is None:
            return
        end.acknowledged(sender.heard(ranges, self._clock()) if sender.is_up else sender.begin(ranges))
        self._news[end.gateway] = sender
        self.catch_up(end)

    def catch_up(self, end: End) -> None:
        """Read on for an end that is connected and lags behind, when its pace allows."""
        wait_s = None if end.sender is None or end.is_reading else end.sender.wait_s(self._clock())
        if wait_s is not None:
            end.is_reading = True
            self._later(f"read {end.gateway}", wait_s, partial(self._read, end))

    def _read(self, end: End) -> None:
        found, sender = self._opened, end.sender
        if found is None or sender is None or not sender.is_up:
            end.is_reading = False
            return
        size = min(sender.chunk_bytes, end.room_bytes)
        if not size:
            return self._later(f"read {end.gateway}", _ROOM_S, partial(self._read, end))
        first = sender.first_missing()
        work = partial(found.journal.read, first, size, sender.following)
        return self._run(work, partial(self._have_read, end, sender, first))

    def _have_read(self, end: End, sender: Sender, first: int, future: "Future[Read]") -> None:
        end.is_reading = False
        found = self._opened
        if found is None or not sender.is_up:
            return None
        if error := future.exception():
            log.error("bus %s: the journal cannot be read: %s", self.name.bus, words_of(error))
            return self._later(f"read {end.gateway}", AGAIN_S, partial(self.catch_up, end))
        if sender.first_missing() < first:  # read for an earlier connection: what is before it is not gone
            return self.catch_up(end)
        read = future.result()
        kept = kept_of(read.records, found.ends[end.gateway].bit)
        backlog = sender.read(kept, read.following, self.now_ms, self._clock())
        end.say(backlog.messages)
        end.gave_up(backlog.others, FOR_OTHERS)
        return self.catch_up(end)

    def close(self, wait: bool = False) -> None:
        """Write what waits, and close the journal; with `wait`, return when that is done. Idempotent."""
        thread, found = self._thread, self._opened
        self._thread = self._opened = None
        for timer in self._timers.values():
            timer.cancel()
        if thread is None:
            return
        if found is not None:
            thread.submit(self._work(found, self._offered, self._told))
            thread.submit(found.journal.close)
        for one in self._offered:
            one.settle(found is not None)
        thread.shutdown(wait)


def _by_call(told: list[Told]) -> "dict[Acknowledge, list[Mark]]":
    """Return what is settled by the call that acknowledges it."""
    found = dict[Acknowledge, list[Mark]]()
    for one in told:
        found.setdefault(one.acknowledge, []).extend(one.marks)
    return found
