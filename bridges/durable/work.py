"""The calls that a house makes in the thread of its journal, and what goes in and comes out. They block."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bridges.durable.classes import Classes
from bridges.durable.end import End
from bridges.durable.receiver import SettledRange
from bridges.durable.sender import FOR_OTHERS, Kept
from bus.journal.journal import EXPIRED, Backlog, Group, Journal
from bus.journal.ranges import Range, RangeSet
from bus.journal.record import Origin, Record, without_ends
from bus.wire.batch import Batch


class Offered(NamedTuple):
    """A batch for the journal: the ends that are due it, who numbered it first, if another journal did, when
    it was first journaled, in ms since 1970, and whether it is sent again at a takeover."""

    batch: Batch
    ends: tuple[End, ...]
    origin: Origin | None
    time_ms: int
    is_replayed: bool = False

    def settle(self, is_kept: bool) -> None:
        """Tell the ends whether the journal has the batch."""
        for end in self.ends:
            end.settle(self.batch, is_kept)


Acknowledge = Callable[[Sequence[SettledRange]], None]
"""A call that acknowledges numbers to the end that sent them."""


class Settled(NamedTuple):
    """Numbers that are settled here, and the call that acknowledges them once this is on disk."""

    marks: tuple[SettledRange, ...]
    acknowledge: Acknowledge


class EndState(NamedTuple):
    """The state of an end in a journal that was opened: its bit in records, and what it has."""

    bit: int
    acknowledged: RangeSet


class Opened(NamedTuple):
    """An open journal: its numbers of other journals, and its ends by their gateways."""

    journal: Journal
    known: dict[int, RangeSet]
    ends: dict[str, EndState]


class Worked(NamedTuple):
    """The outcome of work: new records, the losses of each end so far by reason, the bytes of the journal,
    the number of the first message that it has, the numbers of others that it takes for known although they
    never came, and backlogs if looked at."""

    records: list[Record]
    losses: Mapping[str, Mapping[str, int]]
    bytes: int
    first: int
    assumed: int
    backlogs: Mapping[str, Backlog]


def opened(journal: Journal, gateways: Sequence[str]) -> Opened:
    """Open a journal. Raises `JournalError`."""
    journal.open()
    ends = {one: _state_of(journal, one) for one in gateways}
    return Opened(journal, journal.all_known(), ends)


def _state_of(journal: Journal, name: str) -> EndState:
    return EndState(journal.index(name), journal.acknowledged(name).copy())


Acknowledged = Mapping[str, list[Range]]
"""The numbers that ends have, by their gateways."""


def written(
    journal: Journal, acknowledged: Acknowledged, groups: list[Group], marks: list[SettledRange]
) -> Worked:
    """Append messages, then remember what came: in this order nothing is acknowledged that is not on disk.

    What ends have acknowledged makes room before. Raises `OSError`; `JournalGone` if the files went.
    """
    journal.check()
    _note(journal, acknowledged)
    records = journal.append(groups).records if groups else []
    if marks:
        journal.remember(marks)
    return Worked(records, journal.losses, journal.size, journal.first, journal.assumed, {})


def _note(journal: Journal, acknowledged: Acknowledged) -> None:
    for name, ranges in acknowledged.items():
        journal.acknowledge(name, ranges)


def looked(journal: Journal, acknowledged: Acknowledged, gateways: Sequence[str]) -> Worked:
    """Drop what is acknowledged or too old, and look at what is kept. Raises `OSError`; `JournalGone` if the
    files went."""
    journal.check()
    _note(journal, acknowledged)
    journal.tick()
    backlogs = {one: journal.backlog(one) for one in gateways}
    return Worked([], journal.losses, journal.size, journal.first, journal.assumed, backlogs)


TOGETHER_MS: Final = 20
"""Messages that came within so long may share a record, with the time of the first."""

_Like = tuple[int, Origin | None, int | None, bool]
"""The time, the origin and the ends of messages that may share a record, and whether they are sent again."""


def groups_of(offered: list[Offered], ends: Mapping[str, EndState]) -> list[Group]:
    """Join batches for the same ends, so that their records are longer.

    Those that wait for one commit count from when the first of them came.
    """
    found = list[tuple[_Like, list[Batch]]]()
    for one in offered:
        names = {end.gateway for end in one.ends}
        bits = None if len(names) == len(ends) else sum(1 << ends[name].bit for name in names)
        like = one.time_ms, one.origin, bits, one.is_replayed
        if found and one.origin is None and _goes_on(found[-1][0], like):
            found[-1][1].append(one.batch)
        else:
            found.append((like, [one.batch]))
    return [_group(batches, *like) for like, batches in found]


def _goes_on(like: _Like, other: _Like) -> bool:
    return like[1:] == other[1:] and 0 <= other[0] - like[0] <= TOGETHER_MS


def _group(
    batches: list[Batch], time_ms: int, origin: Origin | None, bits: int | None, is_replayed: bool
) -> Group:
    data = b"".join(one.keep() for one in batches)
    return Group(data, time_ms, origin, bits, is_replayed)


def replayed_of(offered: list[Offered], number: int) -> Iterator[Range]:
    """Yield the numbers of what is sent again, where the first message got `number`."""
    for one in offered:
        if one.is_replayed:
            yield number, number + one.batch.count - 1
        number += one.batch.count


def kept_of(records: list[Record], bit: int, classes: Classes, now_ms: int) -> list[Kept]:
    """Return records as they go to the end with this bit: those that are too old for it apart."""
    found = list[Kept]()
    for record in records:
        if record.ends is not None and not record.ends >> bit & 1:
            found.append(_kept(record, FOR_OTHERS))
            continue
        parts = classes.divided(record, now_ms)
        found += [_kept(one, EXPIRED if is_old else "") for one, is_old in parts]
    return found


def _kept(record: Record, why: str) -> Kept:
    return Kept(without_ends(record).encoded, record.number, record.last, record.time_ms, why)
