"""Sides with a protocol, compared by counts: their items are no frames, so nothing is looked for one by one.

What came in is items, of which each became frames or was rejected; what was handed to the side was sent or
dropped there. The ledgers in a capture have these counts, and its rows the frames. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from capture.schema import ITEMS, Direction, Kind, Verdict
from pipeline.analysis.audit.comparison import UNTOLD
from pipeline.analysis.shared import inventory
from pipeline.analysis.shared.sides import SidePlace, told

if TYPE_CHECKING:
    from pyspark.sql import Row

_SENT: Final = "sent"
_BEFORE: Final = ("pattern", "no frame", "hops", "heard")  # drops of frames that were not handed to the side
PART: Final = "a part of the capture: ledgers count by the second"
MISSED: Final = "its recorder missed rows"
OPEN: Final = "its recorder has no end: what waited then is not counted"


def protocols(taken: "Iterable[Row]") -> dict[SidePlace, str]:
    """Return the protocols of the sides that have one, by topologies."""
    sides = told(inventory.versions(taken)).items()
    found = {place: next((one["protocol"] for one in some if "protocol" in one), "") for place, some in sides}
    return {place: protocol for place, protocol in found.items() if protocol}


def translated(taken: "list[Row]", is_part: bool = False) -> list[tuple[Any, ...]]:
    """Compare each such side of each gateway, from the rows of `pipeline.analysis.shared.inventory.take`:
    rows of `pipeline.analysis.audit.comparison.TRANSLATED`. `is_part`: they are a span of a capture."""
    sides = protocols(taken)
    groups: dict[tuple[str, SidePlace], list[Row]] = defaultdict(list)
    for row in taken:
        if (row.hub, row.bus) in sides and row.kind in (Kind.FRAME, Kind.LEDGER):
            groups[row.gateway, (row.hub, row.bus)].append(row)
    doubts = dict(_doubts(taken))
    found = []
    for (gateway, place), rows in sorted(groups.items()):
        why = PART if is_part else doubts.get(gateway, "")
        for way in Direction:
            counts = _counted([row for row in rows if row.dir == way])
            made = _inward(counts) if way == Direction.RX else _outward(counts)
            if any(made.values()):
                found.append((gateway, *place, sides[place], int(way), *made.values(), why))
    return found


def _doubts(taken: "list[Row]") -> Iterator[tuple[str, str]]:
    for run in inventory.runs(taken):
        if not run.is_ended:
            yield run.gateway, OPEN
    for gateway, _, _, missed, holes, *_ in inventory.uncaptured(taken):
        if missed or holes:
            yield gateway, MISSED


def _counted(rows: "Iterable[Row]") -> Mapping[str, int]:
    """Count messages by the ledger's word; the rows of frames have the word "rows"."""
    found = Counter[str]()
    for row in rows:
        if row.kind == Kind.LEDGER:
            found[row.reason] += row["count"]
        elif row.verdict == Verdict.OK:
            found["rows"] += row["count"]
    return found


def _inward(counts: Mapping[str, int]) -> dict[str, int]:
    """Compare items with frames and rejects. An item that became nothing for no reason is lost."""
    refused = sum(count for word, count in counts.items() if word not in (ITEMS, "rows", "received", UNTOLD))
    return {
        "items": counts.get(ITEMS, 0), "frames": counts.get("received", 0), "refused": refused,
        "lost": counts.get(UNTOLD, 0),
    }  # fmt: skip


def _outward(counts: Mapping[str, int]) -> dict[str, int]:
    """Compare frames that were handed to the side with those that were sent or dropped there."""
    words = (ITEMS, "rows", _SENT, *_BEFORE)
    refused = sum(count for word, count in counts.items() if word not in words)
    handed = counts.get("rows", 0)
    lost = max(0, handed - counts.get(_SENT, 0) - refused)
    return {"items": counts.get(ITEMS, 0), "frames": handed, "refused": refused, "lost": lost}
