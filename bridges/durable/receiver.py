"""The receiving half of a durable trunk: which messages of a record are new here. Pure.

It knows messages by the journal that numbered them first, and their number there, over all hops.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bridges.durable.keys import keys_of, rekeyed, singles
from bridges.durable.replays import Replays
from bridges.durable.wire import REPLAYED, Carried, DurableError
from bus.journal.errors import RecordError
from bus.journal.ranges import Range, RangeSet
from bus.journal.record import Origin, Record, decode
from bus.lateness import LATE_MS
from bus.wire.batch import Batch, from_payloads, payloads

JOURNALS_MAX: Final = 1024
"""The journals of others that are remembered; the one that was silent for longest is forgotten first."""
RANGES_MAX: Final = 4096
AGES_MS: Final = 100


class SettledRange(NamedTuple):
    """Numbers of a journal that are settled here, from `first` to `last`."""

    journal: int
    first: int
    last: int


class Taken(NamedTuple):
    """The outcome of a record: its new messages, None for none, and how old they are in ms.

    `journal` numbered them first, by `numbers`. `marks` are to be remembered before they are acknowledged.
    `known` messages had come before. `is_replayed`: a stand-in sent them at a takeover.
    """

    batch: Batch | None
    age_ms: int
    journal: int
    numbers: Sequence[int]
    marks: tuple[SettledRange, ...]
    known: int
    is_replayed: bool = False

    def identified(self, batch: Batch) -> list[tuple[Batch, Origin | None]]:
        """Divide a batch that leaves while this one passes through the bus. Return runs of messages, and who
        numbered the first of each; None for those that came from elsewhere."""
        if batch.count == len(self.numbers) and self._is_run() and self._is_like(batch):
            return [(batch, (self.journal, self.numbers[0]))]
        known = dict(zip(keys_of(self.batch), self.numbers, strict=False)) if self.batch is not None else {}
        return [(one, self._origin(known.get(key))) for one, key in singles(batch)]

    def _is_like(self, batch: Batch) -> bool:
        """Tell whether a batch begins as this one."""
        return self.batch is not None and next(keys_of(batch)) == next(keys_of(self.batch))

    def _is_run(self) -> bool:
        return self.numbers[-1] - self.numbers[0] + 1 == len(self.numbers)

    def _origin(self, number: int | None) -> Origin | None:
        return None if number is None else (self.journal, number)


def joined(taken: Iterable[Taken]) -> Iterator[Taken]:
    """Yield the outcomes of records, in order, with those that follow each other as one.

    Their age is the greatest; ages that differ by more than `AGES_MS`, late and not late are not mixed.
    """
    run = list[Taken]()
    for one in taken:
        if run and not _goes_on(run[0], run[-1], one):
            yield _as_one(run)
            run = []
        run.append(one)
    if run:
        yield _as_one(run)


def _goes_on(first: Taken, last: Taken, one: Taken) -> bool:
    """Tell whether an outcome follows a run of others, which all gave a run of numbers."""
    return (
        one.batch is not None
        and last.batch is not None
        and one.journal == first.journal
        and one.is_replayed == first.is_replayed
        and type(one.numbers) is type(last.numbers) is range
        and one.numbers[0] == last.numbers[-1] + 1
        and abs(one.age_ms - first.age_ms) <= AGES_MS
        and (one.age_ms > LATE_MS) == (first.age_ms > LATE_MS)
    )


def _as_one(run: list[Taken]) -> Taken:
    if len(run) == 1:
        return run[0]
    batches = [one.batch for one in run if one.batch is not None]
    return Taken(
        Batch(b"".join(one.data for one in batches), sum(one.count for one in batches)),
        max(one.age_ms for one in run),
        run[0].journal,
        range(run[0].numbers[0], run[-1].numbers[-1] + 1),
        _merged(mark for one in run for mark in one.marks),
        sum(one.known for one in run),
        run[0].is_replayed,
    )


def _merged(marks: Iterable[SettledRange]) -> tuple[SettledRange, ...]:
    """Return the same numbers in fewer marks."""
    found = dict[int, list[SettledRange]]()
    for mark in marks:
        own = found.setdefault(mark.journal, [])
        if own and mark.first <= own[-1].last + 1 and own[-1].first <= mark.last + 1:
            mark = SettledRange(mark.journal, min(mark.first, own[-1].first), max(mark.last, own.pop().last))
        own.append(mark)
    return tuple(mark for own in found.values() for mark in own)


class Memory:
    """The numbers of other journals that came here; those of the journal `own` are ours.

    What has come is known at once, so that it does not come twice. It is `settled`, and so acknowledged, only
    once that can be relied on.
    """

    def __init__(self, own: int, settled: dict[int, RangeSet]) -> None:
        self.own, self._settled = own, settled
        self._known = {journal: numbers.copy() for journal, numbers in settled.items()}
        self._replays = Replays()

    def settled(self, journal: int) -> list[Range]:
        """Return the numbers of a journal that are settled here."""
        return list(self._settled.get(journal, ()))

    def settle(self, marks: Sequence[SettledRange]) -> None:
        """Note that numbers are settled."""
        for mark in marks:
            _add(self._settled, mark)

    def take(self, sender: int, carried: Carried) -> Taken:
        """Take a record of the journal `sender`. Raises `DurableError` if it is damaged."""
        record = _decoded(carried)
        journal, first = record.identity(sender)
        numbers = self._new(journal, first, record.count)
        marks = [SettledRange(sender, carried.since, record.last)]
        if record.origin is not None and numbers:
            marks.append(SettledRange(journal, first, first + record.count - 1))
        for mark in marks:
            _add(self._known, mark)
        return Taken(
            _chosen(record, numbers, first),
            carried.age_ms,
            journal,
            numbers,
            tuple(marks),
            record.count - len(numbers),
            bool(carried.lane & REPLAYED),
        )

    def passed(self, taken: Taken, now_ms: int) -> Taken:
        """Return the outcome of records as it goes to the bus, at a time of this process: without what a
        stand-in or a dead holder has sent before, and late messages with keys of their own."""
        is_late = taken.age_ms > LATE_MS
        if taken.batch is None or not (is_late or taken.is_replayed):
            return taken
        keys, time_ms = list(keys_of(taken.batch)), now_ms - taken.age_ms
        known = self._replays.take(keys, taken.journal, time_ms, taken.is_replayed, is_late)
        if known:
            taken = _without(taken, taken.batch, known)
        if taken.batch is None or not is_late:
            return taken
        return taken._replace(batch=rekeyed(taken.batch, taken.journal, taken.numbers))

    def _new(self, journal: int, first: int, count: int) -> Sequence[int]:
        if journal == self.own:
            return ()
        last = first + count - 1
        missing = _of(self._known, journal).missing(first, last)
        if missing == [(first, last)]:
            return range(first, last + 1)
        return [number for start, stop in missing for number in range(start, stop + 1)]


def _without(taken: Taken, batch: Batch, known: Sequence[bool]) -> Taken:
    left = [body for body, was in zip(payloads(batch), known, strict=True) if not was]
    numbers = [number for number, was in zip(taken.numbers, known, strict=True) if not was]
    more = len(known) - len(left)
    return taken._replace(
        batch=from_payloads(left) if left else None, numbers=numbers, known=taken.known + more
    )


def _of(journals: dict[int, RangeSet], journal: int) -> RangeSet:
    found = journals.pop(journal, None) or RangeSet()
    journals[journal] = found  # the one heard last stands last
    while len(journals) > JOURNALS_MAX:
        del journals[next(iter(journals))]
    return found


def _add(journals: dict[int, RangeSet], mark: SettledRange) -> None:
    """Remember numbers. If they lie too scattered, the smallest gap between them counts as settled."""
    known = _of(journals, mark.journal)
    while not known.add(mark.first, mark.last, RANGES_MAX):
        known.close_smallest()


def _decoded(carried: Carried) -> Record:
    try:
        record = decode(carried.record)
    except RecordError as error:
        raise DurableError(f"a record is damaged: {error}") from None
    if not 0 < carried.since <= record.number:
        raise DurableError("a record is out of place")
    return record


def _chosen(record: Record, numbers: Sequence[int], first: int) -> Batch | None:
    """Return the messages of a record with these numbers, of which `first` is that of its first message."""
    batch = Batch(record.messages, record.count)
    if len(numbers) == record.count:
        return batch
    bodies = payloads(batch) if numbers else []
    return from_payloads(bodies[number - first] for number in numbers) if numbers else None
