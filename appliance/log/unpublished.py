"""Log lines that wait to be published on buses: warnings and worse."""

import logging
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Final

from appliance.log.repeats import Repeats, message_of
from bus.logs import LEVELS, Line

WAITING: Final = 256
"""Lines that wait to be published; more are lost and counted."""
_AT_ONCE: Final = 20
_EVENTS: Final = "buscoupler.events"


class UnpublishedLines(logging.Handler):
    """A handler of the root logger that keeps lines. `drain` returns the frames to publish.

    Lines of one cause are held back as in the log.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self.source, self._without_events = source, False
        self.lost = 0
        self._clock = clock
        self._lines: deque[Line] = deque()
        self._repeats = Repeats()

    def listen(self, wanted: bool, without_events: bool = False) -> None:
        """Start or stop keeping log lines. Idempotent.

        `without_events`: lines of events are left out, because they are published as events.
        """
        self._without_events = without_events
        root = logging.getLogger()
        if wanted:
            root.addHandler(self)
        else:
            root.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, from any thread."""
        if self._without_events and record.name == _EVENTS:
            return
        record.msg, record.args = message_of(record), None
        if self._repeats.passes(record, self._clock()):
            self._keep(record, str(record.msg))

    def _keep(self, record: logging.LogRecord, text: str) -> None:
        if len(self._lines) >= WAITING:
            self.lost += 1
            return
        time_ns = int(record.created * 1e9)
        self._lines.append(Line(time_ns, _level(record.levelno), self.source, record.name, text))

    def drain(self) -> list[bytes]:
        """Return the next frames to publish, a few at a time."""
        self.acquire()
        try:
            return [line.frame() for line in self._next()]
        finally:
            self.release()

    def _next(self) -> list[Line]:
        for held in self._repeats.due(self._clock()):
            more = f"(and {held.more} more in {ceil(held.seconds)} s)"
            self._keep(held.last, f"{held.last.msg} {more}")
        lines = [self._lines.popleft() for _ in range(min(len(self._lines), _AT_ONCE))]
        if self.lost and len(self._lines) < WAITING:
            text = f"{self.lost} lines were not published: there were too many"
            lines.append(Line(time.time_ns(), "warning", self.source, __name__, text))
            self.lost = 0
        return lines


def _level(number: int) -> str:
    return LEVELS[2] if number >= logging.CRITICAL else LEVELS[1] if number >= logging.ERROR else LEVELS[0]
