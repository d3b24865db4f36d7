"""The saying of announcements by the parts of a gateway, and the states that they tell."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from appliance.parts.build import Part
from appliance.status.overlay import own_states
from appliance.status.rates import RowKey
from appliance.status.snapshot import edge_rows, part_row, roles

if TYPE_CHECKING:
    from bus.tmq.wire import Address


def say(parts: Iterable[Part], frame: bytes) -> None:
    """Send an announcement by all trunks, and once to each broker."""
    told: set[Address] = set()
    for part in parts:
        part.announce(frame, told)


def states_of(parts: Collection[Part], down_ms: Mapping[RowKey, int]) -> Mapping[str, str]:
    """Return the states of parts and of links that they dial or open, by their ids in the picture.

    `down_ms` says how long links have not been up. Of a link between buses, who dials knows more.
    """
    rows = [row for part in parts for row in part.rows if not row.label.startswith("listen")]
    edges = [edge for row in rows for edge in edge_rows(row, down_ms)]
    return own_states([part_row(part, down_ms) for part in parts], list(roles(parts)), edges)
