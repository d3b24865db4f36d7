"""The findings of the audit, frame by frame, beside what the programs at the doors heard."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from bus.wire.envelope import split
from bus.wire.frame import is_frame, unpack
from capture.schema import Direction, Kind

if TYPE_CHECKING:
    from capture.pcapng import Packet

LOST: Final = "lost"
NOT_CAPTURED: Final = "not captured"
_AROUND_S: Final = 3.0
"""From when a frame was said, in which a door must have had its peer so that it may miss it."""


class AtDoor(Protocol):
    """The part of a program at a door that is asked afterwards."""

    @property
    def said(self) -> Mapping[bytes, tuple[float, str]]:
        """When and with which pattern data were said."""

    @property
    def times(self) -> Mapping[bytes, Sequence[float]]:
        """When data came, each time."""

    def was_open(self, from_s: float, to_s: float) -> bool:
        """Return whether the door had its peer all the time."""


Doors = Mapping[str, AtDoor]


def places(rows: "Iterable[Packet]", doors: Doors) -> dict[str, str]:
    """Return the segment of each door: where its frames entered first."""
    owner = {data: name for name, door in doors.items() for data in door.said}
    found = dict[str, Counter[str]]()
    seen = set[bytes]()
    for row in rows:
        data = _data(row)
        if data in owner and data not in seen and row.dir == Direction.RX:
            seen.add(data)
            found.setdefault(owner[data], Counter())[row.bus] += 1
    return {name: counts.most_common(1)[0][0] for name, counts in found.items()}


def _data(row: "Packet") -> bytes:
    parts = split(row.message) if row.kind == Kind.FRAME else None
    return bytes(unpack(parts[1]).data) if parts is not None and is_frame(parts[1]) else b""


def recorded(rows: "Iterable[Packet]") -> set[bytes]:
    """Return the data of all frames that anybody recorded."""
    return {_data(row) for row in rows}


def takeovers(rows: "Iterable[Packet]") -> int:
    """Return how often a candidate began to forward, the first time of each bridge among them."""
    return sum(row.kind == Kind.EVENT and row.message.startswith(b"takeover: ") for row in rows)


def due(doors: Doors) -> set[tuple[str, str, str]]:
    """Return who hears whom with which pattern: as most of such frames did arrive."""
    came, said = Counter[tuple[str, str, str]](), Counter[tuple[str, str]]()
    for name, door in doors.items():
        for data, (_, pattern) in door.said.items():
            said[name, pattern] += 1
            came.update((name, pattern, other) for other, it in doors.items() if it.times.get(data))
    return {way for way, count in came.items() if way[0] != way[2] and 2 * count > said[way[:2]]}


def accused(
    findings: Iterable[Mapping[str, Any]],
    content: Mapping[int, bytes],
    where: Mapping[str, str],
    doors: Doors,
) -> Iterator[str]:
    """Yield each frame that the audit calls lost and somebody heard, or doubled and nobody heard twice."""
    for row in findings:
        data = content.get(row["key"], b"")
        there = [door for name, door in doors.items() if where.get(name) in (row["segment"], row["hub"])]
        heard = [len(door.times.get(data, ())) for door in there if data not in door.said]
        if not data or not heard:
            continue
        told = f"{row['kind']} {row['stage']} {data.decode()!r} at {row['segment']} ({row['hub']})"
        if row["kind"] == LOST and min(heard):
            yield f"wrong: {told}, and it was heard there"
        if row["kind"] == "duplicate" and max(heard) < 2 and _could_hear(there, data, doors):
            yield f"wrong: {told}, and it was heard {max(heard)} times"


def _could_hear(there: Iterable[AtDoor], data: bytes, doors: Doors) -> bool:
    [at_s] = [door.said[data][0] for door in doors.values() if data in door.said] or [0.0]
    return all(door.was_open(at_s, at_s + _AROUND_S) for door in there)


def dropped(ledger: Iterable[Mapping[str, Any]], where: Mapping[str, str]) -> Counter[str]:
    """Count what the ledgers say was dropped on the way to each door."""
    found = Counter[str]()
    for row in ledger:
        found.update(
            {name: row["count"] for name, at in where.items() if (row["bus"], row["dir"]) == (at, 1)}
        )
    return found


def in_queues(doors: Doors, killed_s: Sequence[float]) -> set[bytes]:
    """Return the frames that may have died in the queue of a gateway that was killed: it had handed them on,
    and nothing knows how many had left. The audit says that its run ends without a last row."""
    said = ((data, at_s) for door in doors.values() for data, (at_s, _) in door.said.items())
    return {data for data, at_s in said if any(0 <= kill_s - at_s <= _AROUND_S for kill_s in killed_s)}


def missed(
    found: Mapping[str, Any],
    content: Mapping[int, bytes],
    known: set[bytes],
    doors: Doors,
    drops: Counter[str],
) -> Iterator[str]:
    """Yield each recorded frame that a door missed, or heard twice, and of which the audit says nothing.

    The `drops` on the way to a door are told by counts.
    """
    told = {content.get(row["key"]) for row in found["findings"]}
    ways = due(doors)
    for name, door in doors.items():
        for data, (at_s, pattern) in door.said.items():
            for other, its in doors.items():
                count = len(its.times.get(data, ()))
                is_due = (name, pattern, other) in ways and its.was_open(at_s, at_s + _AROUND_S)
                if data not in known or data in told or count == 1 or not (count or is_due):
                    continue
                drops[other] -= not count
                if count or drops[other] < 0:
                    yield f"missed: {data.decode()!r} was heard {count} times at {other}, and nothing is told"
