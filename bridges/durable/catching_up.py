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
            log.error("bus %s: the journal cannot be read: %s", self._name, words_of(error))
            return self._later(end, AGAIN_S)
        end.is_reading = False
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
