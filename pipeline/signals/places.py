"""The choice of the rows to decode, so that a value is decoded once where it was seen several times."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from capture.schema import BRIDGE, Direction, Kind

if TYPE_CHECKING:
    from pyspark.sql import Row

FRAMES: Final = "frames"
"""The `reason` of rows of kind 7 that are CAN frames."""
_SEAM_NS: Final = 1_000_000_000
"""The time around the end of one log and the begin of the next, in which frames of several adapters are not
in order."""


class RowPlace(NamedTuple):
    """Rows to decode: of a hub on the side of a segment, those of one direction and kind."""

    hub: str
    bus: str
    dir: int
    kind: int


class _Heard(NamedTuple):
    """The rows of a place: how many there are, and from when to when, in ns."""

    place: RowPlace
    rows: int
    first_ns: int
    last_ns: int

    def is_beside(self, other: "_Heard") -> bool:
        """Return whether a hub heard a segment while another did, and not before or after that."""
        both_ns = min(self.last_ns, other.last_ns) - max(self.first_ns, other.first_ns)
        shorter_ns = min(self.last_ns - self.first_ns, other.last_ns - other.first_ns)
        return both_ns >= min(shorter_ns / 2, _SEAM_NS)


def chosen(taken: "Iterable[Row]", by_wire: bool) -> dict[str, frozenset[RowPlace]]:
    """Choose the places to decode, by gateway, from the rows of an inventory.

    Messages count where they were received from a segment: there they enter. At a bus without a bridge that
    was recorded on its gateway, messages that the gateway itself sent count too. If several hubs heard a
    segment at a time, the one with most rows counts, of equal ones the first by its name; those that heard it
    at other times count too, such as the files of a log that was divided. With `by_wire`, CAN frames on a
    wire count instead of the messages of its segment.
    """
    rows: dict[tuple[str, RowPlace], _Heard] = {}
    for row in taken:
        if row.kind in (Kind.FRAME, Kind.WIRE) and (row.kind == Kind.FRAME or row.reason == FRAMES):
            key = row.gateway, RowPlace(row.hub, row.bus, row.dir, row.kind)
            rows[key] = _added(rows.get(key), _Heard(key[1], row.rows, row.first_ns, row.last_ns))
    bridged = {gateway for gateway, place in rows if place.hub.startswith(BRIDGE)}
    wires = {(gateway, place.bus) for gateway, place in rows if place.kind == Kind.WIRE} if by_wire else set()
    sides: dict[tuple[str, str, int], list[_Heard]] = {}
    for (gateway, place), heard in sorted(rows.items()):
        if place.kind == Kind.WIRE:
            counts = by_wire
        else:
            came = place.dir == Direction.RX or gateway not in bridged
            counts = came and (gateway, place.bus) not in wires
        if counts:
            sides.setdefault((gateway, place.bus, place.dir), []).append(heard)
    found = dict[str, set[RowPlace]]()
    for (gateway, _, _), some in sides.items():
        found.setdefault(gateway, set()).update(_apart(some))
    return {gateway: frozenset(places) for gateway, places in found.items()}


def _added(one: _Heard | None, other: _Heard) -> _Heard:
    if one is None:
        return other
    first_ns, last_ns = min(one.first_ns, other.first_ns), max(one.last_ns, other.last_ns)
    return _Heard(one.place, one.rows + other.rows, first_ns, last_ns)


def _apart(some: "Iterable[_Heard]") -> "Iterator[RowPlace]":
    """Yield the places of one side with most rows, none of them beside another."""
    kept = list[_Heard]()
    for one in sorted(some, key=lambda heard: -heard.rows):
        if not any(map(one.is_beside, kept)):
            kept.append(one)
            yield one.place
