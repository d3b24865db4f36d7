"""The coverage of an audit: what was not looked at, so that nothing is said of it. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from capture.schema import Hubs, Kind
from pipeline.analysis.audit.dark import is_open, known
from pipeline.analysis.shared import inventory
from pipeline.analysis.shared.steps import Step
from pipeline.output.tables import clock

if TYPE_CHECKING:
    from pyspark.sql import Row

COVERAGE: Final = {"what": str, "name": str, "from_ns": int, "to_ns": int, "n": int}

NOT_ASKED: Final = "not asked for"
NO_ROWS: Final = "no rows"
LEFT_OUT: Final = "files left out"
RECORDING: Final = "still recording"
CUT_OFF: Final = "ends without a last row"
CLOCK: Final = "clock stepped"

Gap = tuple[str, str, int | None, int | None, int | None]
"""A row of `COVERAGE`: a gateway or a bus, and since when or until when; how many files or ns."""


def coverage(
    taken: "Sequence[Row]", asked: Collection[str], left_out: int, stepped: Iterable[Step] = ()
) -> list[Gap]:
    """Find what was not looked at, from the rows of `pipeline.analysis.shared.inventory.take`.

    `asked` are the gateways that were asked for, none for all; `left_out` files could not be read, and clocks
    have `stepped`.
    """
    topologies = list(inventory.topologies(taken))
    found = [
        (NOT_ASKED if asked else NO_ROWS, name, None, None, None) for name in _missing(taken, topologies)
    ]
    files: list[Gap] = [(LEFT_OUT, "", None, None, left_out)] if left_out else []
    clocks = ((CLOCK, one.gateway, one.was_ns, one.at_ns, one.by_ns) for one in stepped)
    return [*files, *found, *_ends(inventory.runs(taken)), *clocks]


def _missing(taken: "Sequence[Row]", topologies: Sequence[Hubs]) -> list[str]:
    """Find the gateways that a topology names and no row is of, and buses that only others' trunks name."""
    gateways = {row.gateway for row in taken if row.kind != Kind.TOPOLOGY}
    hubs = {row.hub for row in taken if row.kind == Kind.FRAME}.union(*topologies)
    trunks = {name for one in topologies for hub in one.values() for name in hub.get("trunks", ())}
    return sorted(known(topologies) - gateways) + sorted(trunks - hubs)


def _ends(runs: Sequence[inventory.Run]) -> Iterator[Gap]:
    for run in runs:
        later = any(one.gateway == run.gateway and one.last_ns > run.last_ns for one in runs)
        if not run.is_ended:
            what = RECORDING if is_open(run, runs) and not later else CUT_OFF
            yield what, run.gateway, run.last_ns, None, None


def said(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield words for the first line of an audit, from rows of `COVERAGE`."""
    found = list(rows)
    for what, words in _WORDS.items():
        some = [row for row in found if row["what"] == what]
        if some:
            names = _named([row["name"] for row in some])
            last = max((row["from_ns"] or 0 for row in some), default=0)
            yield words.format(names=names, n=sum(row["n"] or 0 for row in some), at=clock(last))
    for row in (row for row in found if row["what"] == CLOCK):
        yield f"the clock of {row['name']} stepped by {row['n'] / 1e9:+,.1f} s at {clock(row['from_ns'])}"


_WORDS: Final = {
    LEFT_OUT: "{n:,} files were left out",
    NOT_ASKED: "{names} was not looked at",
    NO_ROWS: "nothing of {names} is in this capture",
    RECORDING: "{names} still records, and is looked at up to {at}",
}


def _named(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
