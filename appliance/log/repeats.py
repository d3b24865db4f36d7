"""Rate limit of log lines with one cause: the first goes out at once, the others are counted.

A fault can quote what a peer said, and so be another one each time. Therefore causes are bounded too: of one
place, such as a link, and in all.
"""

import logging
from collections import Counter
from typing import Final, NamedTuple

REPEAT_S: Final = 10.0
_CAUSES: Final = 1024
_OF_PLACE: Final = 16


def message_of(record: logging.LogRecord) -> str:
    """Return the message with its arguments, also if they do not fit."""
    try:
        return record.getMessage()
    except (TypeError, ValueError) as error:
        return f"{record.msg} {record.args} ({error})"


Cause = tuple[str, int, str]


def cause_of(record: logging.LogRecord) -> Cause:
    """Return the key of equal lines: the `cause` that the caller gave, else the whole message."""
    cause = record.__dict__.get("cause")
    return record.name, record.levelno, record.getMessage() if cause is None else str(cause)


def place_of(record: logging.LogRecord) -> str:
    """Return the `place` that the caller gave, whose peers may make many causes; "" for none."""
    return str(record.__dict__.get("place", ""))


class Repeats:
    """The lines of the last `REPEAT_S` seconds, by at most 1024 causes. `now` is in seconds, monotonic.

    Causes beyond these, or beyond the 16 of one place, are one for each logger and level.
    """

    def __init__(self) -> None:
        self._open: dict[Cause, _Window] = {}
        self._places = Counter[str]()

    def passes(self, record: logging.LogRecord, now: float) -> bool:
        """Return whether the record goes out now: the first of its cause does, the others are counted."""
        cause, place = cause_of(record), place_of(record)
        if cause not in self._open and self._is_crowded(place):
            cause = record.name, record.levelno, f"{place}: others"
        window = self._open.get(cause)
        if window is not None:
            window.last, window.more = record, window.more + 1
            return False
        self._open[cause] = _Window(now, record, place)
        self._places[place] += 1
        return True

    def _is_crowded(self, place: str) -> bool:
        return len(self._open) >= _CAUSES or bool(place and self._places[place] >= _OF_PLACE)

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
                self._open[cause] = _Window(now, window.last, window.place)
            else:
                self._forget(window.place)
        return found

    def rest(self, now: float) -> list["Held"]:
        """Return all lines that are still held, as `due` does, and forget them."""
        open_ = self._open.values()
        found = [Held(one.last, one.more, now - one.since_s) for one in open_ if one.more]
        self._open.clear()
        self._places.clear()
        return found

    def _forget(self, place: str) -> None:
        self._places[place] -= 1
        if not self._places[place]:
            del self._places[place]

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
    __slots__ = ("last", "more", "place", "since_s")

    def __init__(self, since_s: float, last: logging.LogRecord, place: str) -> None:
        self.since_s, self.last, self.place, self.more = since_s, last, place, 0
