"""Values that go into a journal and come out of it. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from bus.journal.ranges import Range
from bus.journal.record import Origin, Record, encode
from bus.wire.batch import Buffer


class Group(NamedTuple):
    """Messages to append: a batch's bytes, and when they were first journaled (ms since 1970). `origin` is
    the journal and the number that the first of them got elsewhere, None for those that begin here. `ends`
    has one bit for each consumer that is due them (`Journal.index`); None: all are. Those that are `apart`
    share no record with others."""

    data: Buffer
    time_ms: int
    origin: Origin | None = None
    ends: int | None = None
    apart: bool = False


class Appended(NamedTuple):
    """A result of `append`: the number of the first message, and its records."""

    first: int
    records: list[Record]


class Read(NamedTuple):
    """A result of `read`: records, and the number after them. Of the messages in between, `damaged` cannot be
    read, and `gone` are not kept any more."""

    records: list[Record]
    following: int
    damaged: int
    gone: int


class Backlog(NamedTuple):
    """The messages that a consumer has not acknowledged, their bytes in the journal (shared out evenly within
    a segment), and when the oldest was first journaled, in ms since 1970; None without any."""

    messages: int
    bytes: int
    oldest_ms: int | None


def encoded(groups: Sequence[Group], number: int) -> list[Record]:
    """Return the records of all messages, the first of which has `number`. Raises `RecordError`."""
    records = list[Record]()
    for group in joined(groups):
        records += encode(group.data, number, group.time_ms, group.origin, group.ends)
        number = records[-1].last + 1 if records else number
    return records


def joined(groups: Sequence[Group]) -> list[Group]:
    """Return the same messages in fewer groups: what begins here at one time, for the same ends, is one."""
    made, parts = list[Group](), list[list[Buffer]]()
    for group in groups:
        if made and group.origin is None and made[-1][1:] == group[1:]:
            parts[-1].append(group.data)
        else:
            made.append(group)
            parts.append([group.data])
    return [
        group if len(some) == 1 else group._replace(data=b"".join(some))
        for group, some in zip(made, parts, strict=True)
    ]


def between(number: int, records: list[Record], following: int) -> list[Range]:
    """Return the ranges of numbers, from `number` to before `following`, that are in none of the records."""
    found = list[Range]()
    for record in records:
        if number < record.number:
            found.append((number, record.number - 1))
        number = record.last + 1
    if number < following:
        found.append((number, following - 1))
    return found
