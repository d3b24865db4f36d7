"""The journal of a bus on an event loop: written and read in one thread, and its ends hear of the outcome.

Messages gather while the thread works, so one sync is for all of them. A journal that cannot be opened or
written is a state: messages are live only meanwhile, and the next attempt follows.
"""

import logging
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Final, TypeVar

from bridges.durable.ages import Wall
from bridges.durable.catching_up import AGAIN_S, CatchUp
from bridges.durable.classes import Classes, Room
from bridges.durable.end import End
from bridges.durable.intake import Intake, by_call
from bridges.durable.looks import Looks
from bridges.durable.receiver import Memory
from bridges.durable.sender import Sender
from bridges.durable.settings import Durable
from bridges.durable.wire import EndName
from bridges.durable.work import (
    Acknowledged,
    EndState,
    Offered,
    Opened,
    Settled,
    Worked,
    groups_of,
    kept_of,
    looked,
    opened,
    replayed_of,
    written,
)
from bridges.durable.worker import Worker
from bus.errors import words_of
from bus.journal.errors import JournalError, JournalGone
from bus.journal.files import Files
from bus.journal.journal import EXPIRED, Journal
from bus.journal.ranges import Range, RangeSet
from bus.journal.record import Record
from bus.wire.batch import Batch

T = TypeVar("T")
log = logging.getLogger("buscoupler.bridges")

TICK_S: Final = 1.0
COMMITS_MIN: Final = 8
"""A commit has this part of a journal at most: it has room for all of it, with the heads of records."""
REPLAYED_MAX: Final = 4096
"""Takeovers of which the frames that were sent again are known."""


class House:
    """The journal of one bus, and its ends.

    `name` is that of this end; `gateways` are those for which the journal is kept. `fault` says why the last
    messages were not taken, "" if they were; until it has opened, they wait. `losses` counts such times after
    it was open. `memory` is there once it is open. `intake` is what waits for the journal, and `looks` what
    is kept in it. `ended` is there once it is closed, and still does its last work.
    """

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
        self.memory: Memory | None = None
        self.ended: Worker | None = None
        self.looks = Looks(self.gateways)
        self._ends: dict[str, End] = {}
        self._senders: dict[str, Sender] = {}  # of all gateways, whether their links are open or not
        self._clock, self._unix_s, self._files = clock, unix_s, files
        self._wall, self._classes = Wall(clock, unix_s), Classes(settings.classes)
        self._room = Room(self._classes, settings.bytes, settings.policy == "lowest")
        self.intake = Intake(self._room, lambda: self.now_ms)
        self._opened: Opened | None = None
        self._found: Opened | None = None  # the same in the thread, which may know it before
        self._worker: Worker | None = None
        self._backlog: CatchUp | None = None
        self._news = dict[str, Sender]()
        self._when_open = list[Callable[[], None]]()
        self._replayed = RangeSet()
        self._most_bytes = settings.bytes // COMMITS_MIN
        self._is_committing = self._has_note_fault = False
        self._committing = list[Offered]()
        self._lacked_bytes = 0  # the messages of the last commit that failed
        self._assumed = 0  # numbers of others that are taken for known, as the log has them
        self._last_commit_s = float("-inf")

    @property
    def ends(self) -> list[End]:
        """The ends whose links are open."""
        return list(self._ends.values())

    @property
    def now_ms(self) -> int:
        """The time of day, in ms since 1970."""
        return self._wall.now_ms

    @property
    def journal_id(self) -> int:
        """The id of the journal; 0 while it is not open."""
        return 0 if self._opened is None else self._opened.journal.id

    def open(self, loop: AbstractEventLoop, before: "House | None" = None) -> None:
        """Open the journal in the thread, once the house `before`, which is closed, is done. Idempotent."""
        if self._worker is None:
            self._worker = Worker(loop, None if before is None else before.ended)
            self._try()

    def _run(self, work: Callable[[], T], done: "Callable[[Future[T]], None]") -> None:
        if self._worker is not None:
            self._worker.run(work, done)

    def _later(self, name: str, delay_s: float, call: Callable[[], None]) -> None:
        if self._worker is not None:
            self._worker.later(delay_s, call, name)

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
        self._run(partial(self._open_journal, journal), self._on_open)

    def _open_journal(self, journal: Journal) -> Opened:
        self._found = opened(journal, self.gateways)
        return self._found

    def _on_open(self, future: "Future[Opened]") -> None:
        error = future.exception()
        if error is not None:
            return self._fail(words_of(error), self._try)
        found = self._opened = future.result()
        self.memory = Memory(found.journal.id, found.known)
        self.looks.begin(found.journal.losses)
        self.fault, self.intake.is_open = "", True
        self._backlog = self._made_backlog(found)
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
        self.fault = fault
        self.intake.give_up()
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
        error = future.exception()
        if isinstance(error, JournalGone):
            self._fail(words_of(error), self._recover)
        elif error:
            self._say_notes(words_of(error))
        else:
            self._say_notes("")
            self.looks.look(future.result(), self._clock())
            self._note(future.result())
        self._later("tick", TICK_S, self._tick)

    def _say_notes(self, fault: str) -> None:
        """Say once that the journal notes nothing, and once that it does again."""
        bus, had_fault, self._has_note_fault = self.name.bus, self._has_note_fault, bool(fault)
        if fault and not had_fault:
            text = "bus %s: the journal cannot note what is acknowledged: %s; will go on trying"
            log.warning(text, bus, fault)
        elif had_fault and not fault:
            log.warning("bus %s: the journal notes again what is acknowledged", bus)

    def _note(self, worked: Worked) -> None:
        self.looks.count(worked, self._ends.values())
        for sender in self._senders.values():
            sender.forget(worked.first)
        self._room.size = worked.bytes
        self._say_assumed(worked.assumed)

    def _say_assumed(self, count: int) -> None:
        """Say that messages may be missing here: the first time, and when there are twice as many."""
        if count and count >= 2 * self._assumed:
            self._assumed = count
            text = (
                "bus %s: the numbers that ends sent have too many gaps: %d messages that never came would be "
            )
            log.warning(text + "dropped as duplicates if they came now", self.name.bus, count)

    def when_open(self, call: Callable[[], None]) -> None:
        """Call a function when the journal has opened, if it has not."""
        self._when_open.append(call)

    def enter(self, end: End) -> None:
        """Keep for an end whose link has opened."""
        self._ends[end.gateway] = end
        if self._opened is not None:
            end.begin(self._senders[end.gateway])

    def _sender(self, state: EndState, found: Opened) -> Sender:
        share, is_fifo = self.settings.catch_up, self.settings.order == "fifo"
        return Sender(state.acknowledged, found.journal.next, share, is_fifo, self._replayed.__contains__)

    def _made_backlog(self, found: Opened) -> CatchUp | None:
        worker = self._worker
        if worker is None:
            return None
        return CatchUp(self.name.bus, found, worker, self._classes, self._clock, lambda: self.now_ms)

    def leave(self, end: End) -> None:
        """Forget an end whose link has closed. What is kept for it stays in the journal."""
        if self._ends.get(end.gateway) is end:
            del self._ends[end.gateway]
        end.depart()

    # What goes into the journal.

    def offer(self, end: End, batch: Batch) -> None:
        """Take messages that an end is due."""
        self.intake.offer(end, batch)
        self._pump()

    def tell(self, told: Settled) -> None:
        """Remember numbers, and acknowledge them when this is on disk."""
        self.intake.tell(told)
        self._pump()

    def _pump(self) -> None:
        """Plan a commit, if there is something for it, the thread is free, and the last was not just now.

        It never begins at once: other ends are offered the same batch next, and it is to be journaled once.
        """
        worker = self._worker
        if worker is None or self._opened is None or self._is_committing or not self.intake:
            return
        wait_s = self._last_commit_s + self.settings.sync_ms / 1000 - self._clock()
        worker.later(max(0.0, wait_s), self._commit, "commit")

    def _commit(self) -> None:
        if self._opened is None or self._is_committing:
            return
        offered, told = self.intake.taken(self._most_bytes)
        self._is_committing, self._committing, self._last_commit_s = True, offered, self._clock()
        self._run(self._work(offered, told), partial(self._committed, offered, told))

    def _work(self, offered: list[Offered], told: list[Settled]) -> Callable[[], Worked]:
        """Return the call that writes."""
        marks, news = [mark for one in told for mark in one.marks], self._take_news()

        def work() -> Worked:
            found = self._found
            if found is None:
                raise JournalError("it did not open")
            return written(found.journal, news, groups_of(offered, found.ends), marks)

        return work

    def _committed(self, offered: list[Offered], told: list[Settled], future: "Future[Worked]") -> None:
        self._is_committing, self._committing = False, []
        error = future.exception()
        if error is not None:
            self._lacked_bytes = sum(len(one.batch.data) for one in offered)
            self.intake.again(told)  # nothing of it is acknowledged
            for one in offered:
                one.settle(False)
            return self._fail(words_of(error), self._recover)
        worked, self.fault = future.result(), ""
        for one in offered:
            one.settle(True)
        self._note(worked)
        if worked.records:
            for first, last in replayed_of(offered, worked.records[0].number):
                self._replayed.add(first, last, REPLAYED_MAX)
        self._send(worked.records)
        for acknowledge, marks in by_call(told).items():
            acknowledge(marks)
        return self._pump()

    def _recover(self) -> None:
        """Try to write again: the next commit tells whether that works, or a trial where nothing comes.

        The trial is as large as what failed: a disk with less room would be in trouble anew each time.
        """
        self.intake.is_open = True
        if self._opened is not None and self.fault and not (self.intake or self._is_committing):
            self._run(partial(self._opened.journal.try_out, self._lacked_bytes), self._tried)
        self._pump()

    def _tried(self, future: "Future[None]") -> None:
        error = future.exception()
        self.fault = "" if error is None else words_of(error)
        if error is not None:
            self._later("again", AGAIN_S, self._recover)

    def _send(self, records: list[Record]) -> None:
        """Give new records to the ends that are connected."""
        found = self._opened
        if found is None or not records:
            return
        now_ms = self.now_ms
        for name, sender in self._senders.items():
            end, kept = self._ends.get(name), kept_of(records, found.ends[name].bit, self._classes, now_ms)
            messages = list(sender.committed(kept, now_ms, 0 if end is None else end.room_bytes))
            if end is not None:
                end.gave_up(sum(one.last - one.first + 1 for one in kept if one.why == EXPIRED), EXPIRED)
                end.say(messages)
                self._catch_up(end)

    # What comes out of it.

    def heard(self, end: End, ranges: Sequence[Range]) -> None:
        """Take what an end says that it has: the first time on a connection, this begins the exchange."""
        found, sender = self._opened, end.sender
        if found is None or sender is None:
            return
        end.acknowledged(sender.heard(ranges, self._clock()) if sender.is_up else sender.begin(ranges))
        self._news[end.gateway] = sender
        self._catch_up(end)

    def taken(self, end: End, last: int) -> None:
        """Note that an end has taken what it was sent of its backlog, up to a number."""
        if end.sender is not None:
            end.sender.taken(last, self._clock())
            self._catch_up(end)

    def _catch_up(self, end: End) -> None:
        if self._backlog is not None:
            self._backlog.go_on(end)

    def close(self, wait: bool = False) -> None:
        """Write what waits, and close the journal; with `wait`, return when that is done. Idempotent.

        A journal that is being opened is opened, written and closed too.
        """
        worker = self._worker
        self._worker = self._opened = self._backlog = None
        if worker is None:
            return
        portions = [self.intake.taken(self._most_bytes)]  # also an empty one: acknowledgements are noted
        while self.intake:
            portions.append(self.intake.taken(self._most_bytes))
        works = [self._work(*one) for one in portions]
        for one in chain(self._committing, *(offered for offered, _ in portions)):
            one.settle(True)
        self.ended, self._committing = worker, []
        worker.close(*works, self._close_journal, wait=wait)

    def _close_journal(self) -> None:
        if self._found is not None:
            self._found.journal.close()
