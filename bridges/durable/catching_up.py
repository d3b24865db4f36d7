"""Reading the backlogs of ends out of an open journal, each at its pace."""

import logging
from asyncio import Future
from collections.abc import Callable
from functools import partial
from typing import Final

from bridges.durable.classes import Classes
from bridges.durable.end import End
from bridges.durable.sender import Sender
from bridges.durable.work import Opened, kept_of
from bridges.durable.worker import Worker
from bus.errors import words_of
from bus.journal.groups import Read

log = logging.getLogger("buscoupler.bridges")

AGAIN_S: Final = 1.0
_ROOM_S: Final = 0.02  # between two looks whether a connection has room


class CatchUp:
    """The backlogs in the journal of the bus `name`. `clock` is monotonic, in seconds, `now_ms` the time of
    day."""

    def __init__(
        self,
        name: str,
        found: Opened,
        worker: Worker,
        classes: Classes,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self._name, self._found, self._worker, self._classes = name, found, worker, classes
        self._clock, self._now_ms = clock, now_ms
        self._unreadable = set[str]()  # the gateways for which the journal could not be read the last time

    def go_on(self, end: End) -> None:
        """Read on for an end that is connected and lags behind, when its pace allows."""
        wait_s = None if end.sender is None or end.is_reading else end.sender.wait_s(self._clock())
        if wait_s is not None:
            end.is_reading = True
            self._later(end, wait_s)

    def _later(self, end: End, delay_s: float) -> None:
        self._worker.later(delay_s, partial(self._read, end))

    def _read(self, end: End) -> None:
        sender = end.sender
        if sender is None or not end.is_up:
            end.is_reading = False
            return None
        size = min(sender.chunk_bytes, end.room_bytes)
        if not size:
            return self._later(end, _ROOM_S)
        first = sender.first_missing()
        work = partial(self._found.journal.read, first, size, sender.following)
        return self._worker.run(work, partial(self._have_read, end, sender, first))

    def _have_read(self, end: End, sender: Sender, first: int, future: "Future[Read]") -> None:
        if error := future.exception():
            return self._fail(end, words_of(error))
        end.is_reading = False
        self._say_readable(end)
        if not end.is_up:
            return None
        if sender.first_missing() < first:  # read for an earlier connection: what is before it is not gone
            return self.go_on(end)
        read, now_ms = future.result(), self._now_ms()
        kept = kept_of(read.records, self._found.ends[end.gateway].bit, self._classes, now_ms)
        backlog = sender.read(kept, read.following, now_ms, self._clock())
        end.say(backlog.messages)
        for reason, count in backlog.left.items():
            end.gave_up(count, reason)
        return self.go_on(end)

    def _fail(self, end: End, why: str) -> None:
        """Try again later; say why once, however long it lasts."""
        if end.gateway not in self._unreadable:
            self._unreadable.add(end.gateway)
            text = "bus %s: the journal cannot be read for %s: %s; will go on trying"
            log.error(text, self._name, end.gateway, why)
        self._later(end, AGAIN_S)

    def _say_readable(self, end: End) -> None:
        if end.gateway in self._unreadable:
            self._unreadable.remove(end.gateway)
            log.warning("bus %s: the journal can be read for %s again", self._name, end.gateway)
