"""Rate limit of log lines with one cause: the first goes out at once, the others are counted."""

import logging
from typing import Final, NamedTuple

REPEAT_S: Final = 10.0
_CAUSES: Final = 1024


def message_of(record: logging.LogRecord) -> str:
    """Return the message with its arguments, also if they do not fit."""
    try:
        return record.getMessage()
    except (TypeError, ValueError) as error:
        return f"{record.msg} {record.args} ({error})"


def cause_of(record: logging.LogRecord) -> tuple[str, int, str]:
    """Return the key of equal lines: the `cause` that the caller gave, else the whole message."""
    cause = record.__dict__.get("cause")
    return record.name, record.levelno, record.getMessage() if cause is None else str(cause)


class Repeats:
    """The lines of the last `REPEAT_S` seconds, by at most 1024 causes. `now` is in seconds, monotonic."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int, str], _Window] = {}

    def passes(self, record: logging.LogRecord, now: float) -> bool:
        """Return whether the record goes out now: the first of its cause does, the others are counted."""
        cause = cause_of(record)
        window = self._open.get(cause)
        if window is not None:
            window.last, window.more = record, window.more + 1
            return False
        if len(self._open) < _CAUSES:  # with so many causes, no line is like another
            self._open[cause] = _Window(now, record)
        return True

    def due(self, now: float) -> list["Held"]:
        """Return the held lines of each cause whose time is over.

        A cause with held lines begins anew, so that it goes on being logged, once in this time.
        """
        found = []
        for cause, window in list(self._open.items()):
            if now - window.since_s < REPEAT_S:
                break  # in the order of their beginning
            del self._open[cause]
            if window.more:
                found.append(Held(window.last, window.more, now - window.since_s))
                self._open[cause] = _Window(now, window.last)
        return found

    def rest(self, now: float) -> list["Held"]:
        """Return all lines that are still held, as `due` does, and forget them."""
        open_ = self._open.values()
        found = [Held(one.last, one.more, now - one.since_s) for one in open_ if one.more]
        self._open.clear()
        return found

    def next_s(self, now: float) -> float | None:
        """Return the seconds until something can be due; None if nothing waits."""
        first = next(iter(self._open.values()), None)
        return None if first is None else max(0.0, first.since_s + REPEAT_S - now)


class Held(NamedTuple):
    """Held lines of one cause: the `last` of them, and how many `more` there were in `seconds`."""

    last: logging.LogRecord
    more: int
    seconds: float


class _Window:
    __slots__ = ("last", "more", "since_s")

    def __init__(self, since_s: float, last: logging.LogRecord) -> None:
        self.since_s, self.last, self.more = since_s, last, 0
