"""The words for sides with a protocol, which are compared by counts. Pure, and without Spark:
`pipeline.analysis.audit.translated` counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from capture.schema import Direction

TRANSLATED: Final = {
    "gateway": str, "hub": str, "segment": str, "protocol": str, "dir": int,
    "items": int, "frames": int, "refused": int, "lost": int, "known": str,
}  # fmt: skip
"""`items` on the wire, `frames` in the bridge, those that were `refused` by a reason (in: items), and `lost`:
frames that were neither sent nor dropped. `known`: "", or why nothing can be said of a loss."""

UNTOLD: Final = "untold"


def faults(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count what was lost for sure, by words that name the side."""
    found = Counter[str]()
    for row in rows:
        if row["lost"] and not row["known"]:
            way = "in" if row["dir"] == Direction.RX else "out"
            found[f"{way} by {row['protocol']} at {row['segment']} ({row['hub']} of {row['gateway']})"] += (
                row["lost"]
            )
    return found


def said(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield words for the first line of an audit: that so many sides were compared, and of which nothing is
    known."""
    every = list(rows)
    sides = {(row["gateway"], row["hub"], row["segment"]): row for row in every}
    if sides:
        s, were = ("", "was") if len(sides) == 1 else ("s", "were")
        yield f"{len(sides)} side{s} with a protocol {were} compared by counts"
    doubtful = {(row["hub"], row["segment"], row["known"]) for row in every if row["lost"] and row["known"]}
    for hub, segment, why in sorted(doubtful):
        yield f"what {hub} lost at {segment} is not known: {why}"
