"""The classes of messages in a journal: which go first when it is full, and how old each may get. Pure."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from bridges.durable.ages import age_of
from bridges.durable.keys import bounds
from bridges.durable.settings import JournalClass
from bridges.durable.sifting import frame_at, parted
from bridges.rules import Rule, Rules
from bus.journal.record import Record, part
from bus.wire.batch import Batch


class Classes:
    """Classes of enveloped messages, the highest first: of several that fit, the first counts, and what fits
    none is below all of them."""

    def __init__(self, classes: Sequence[JournalClass] = ()) -> None:
        self._rules = [Rules(Rule(one.pattern)) for one in classes]
        self._ages_ms = [one.age_ms for one in classes]
        self._least_ms = min((one for one in self._ages_ms if one is not None), default=None)
        self.lowest = len(self._rules)

    def rank(self, data: bytes, start: int, stop: int) -> int:
        """Return the class of a message: 0 is the highest, `lowest` has what fits none."""
        frame = frame_at(data, start, stop)
        if frame is None:
            return self.lowest
        found = (number for number, rules in enumerate(self._rules) if rules.admit(data, frame))
        return next(found, self.lowest)

    def divided(self, record: Record, now_ms: int) -> Iterator[tuple[Record, bool]]:
        """Yield a record in parts, each with whether it is older than its classes may get."""
        age_ms = age_of(now_ms, record.time_ms)
        if self._least_ms is None or age_ms <= self._least_ms:
            yield record, False
            return
        data, number = record.messages, record.number
        olds = (self._is_old(data, start, stop, age_ms) for start, stop in bounds(data, record.count))
        for is_old, some in groupby(olds):
            count = sum(1 for _ in some)
            yield part(record, number, number + count - 1), is_old
            number += count

    def _is_old(self, data: bytes, start: int, stop: int, age_ms: int) -> bool:
        rank = self.rank(data, start, stop)
        limit_ms = None if rank == self.lowest else self._ages_ms[rank]
        return limit_ms is not None and age_ms > limit_ms


class Room:
    """The room in a journal of `bytes_max`. With `is_lowest` the lowest class has half of it, and each class
    above has more, to all of it for the highest. `size` is what the journal has."""

    def __init__(self, classes: Classes, bytes_max: int, is_lowest: bool) -> None:
        self._classes, self._bytes_max = classes, bytes_max
        self._half = bytes_max // 2 if is_lowest and classes.lowest else bytes_max + 1
        self.size = 0
        self._last: tuple[Batch, Batch | None, Batch | None] | None = None

    def divided(self, batch: Batch) -> tuple[Batch | None, Batch | None]:
        """Return the messages that there is room for, and the rest; the same for one batch again."""
        if self.size <= self._half:
            return batch, None
        if self._last is None or self._last[0] is not batch:
            steps = 2 * self._classes.lowest
            worst = steps * max(0, self._bytes_max - self.size) // self._bytes_max
            rank = self._classes.rank
            self._last = batch, *parted(batch, lambda data, start, stop: rank(data, start, stop) <= worst)
        return self._last[1:]
