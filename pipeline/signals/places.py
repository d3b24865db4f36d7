"""The choice of the rows to decode, so that a value is decoded once where it was seen several times."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from capture.schema import BRIDGE, Direction, Kind

if TYPE_CHECKING:
    from pyspark.sql import Row

FRAMES: Final = "frames"
"""The `reason` of rows of kind 7 that are CAN frames."""


class Place(NamedTuple):
    """Rows to decode: of a hub on the side of a segment, those of one direction and kind."""

    hub: str
    bus: str
    dir: int
    kind: int


def chosen(taken: "Iterable[Row]", by_wire: bool) -> dict[str, frozenset[Place]]:
    """Choose the places to decode, by gateway, from the rows of an inventory.

    Messages count where they were received from a segment: there they enter. At a bus without a bridge that
    was recorded on its gateway, messages that the gateway itself sent count too. If several hubs heard a
    segment, the one with most rows counts, of equal ones the first by its name. With `by_wire`, CAN frames
    on a wire count instead of the messages of its segment.
    """
    rows = dict[tuple[str, Place], int]()
    for row in taken:
        if row.kind in (Kind.FRAME, Kind.WIRE) and (row.kind == Kind.FRAME or row.reason == FRAMES):
            key = row.gateway, Place(row.hub, row.bus, row.dir, row.kind)
            rows[key] = rows.get(key, 0) + row.rows
    bridged = {gateway for gateway, place in rows if place.hub.startswith(BRIDGE)}
    wires = {(gateway, place.bus) for gateway, place in rows if place.kind == Kind.WIRE} if by_wire else set()
    best = dict[tuple[str, str, int], tuple[int, Place]]()
    for (gateway, place), count in sorted(rows.items()):
        side = gateway, place.bus, place.dir
        if place.kind == Kind.WIRE:
            counts = by_wire
        else:
            came = place.dir == Direction.RX or gateway not in bridged
            counts = came and side[:2] not in wires
        if counts and count > best.get(side, (0, place))[0]:
            best[side] = count, place
    found = dict[str, set[Place]]()
    for (gateway, _, _), (_, place) in best.items():
        found.setdefault(gateway, set()).add(place)
    return {gateway: frozenset(places) for gateway, places in found.items()}
