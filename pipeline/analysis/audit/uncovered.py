"""The search for what an audit does not see: gateways and buses without rows, and unfinished files."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from capture.schema import Hubs, Kind
from pipeline.analysis.audit.coverage import (
    APART,
    CLOCK,
    CUT_OFF,
    DRIFT,
    LEFT_OUT,
    NO_ROWS,
    NOT_ASKED,
    RECORDING,
    UNFOLLOWED,
    UNKNOWABLE,
    UNREAD,
)
from pipeline.analysis.audit.dark import is_open, known
from pipeline.analysis.shared import inventory
from pipeline.analysis.shared.drifts import Drift
from pipeline.analysis.shared.sides import STRIPPED
from pipeline.analysis.shared.steps import Step
from pipeline.input.span import MARGIN_NS, Span
from pipeline.input.unread import Unread

if TYPE_CHECKING:
    from pyspark.sql import Row

    from pipeline.analysis.shared.sides import Cuts

Gap = tuple[str, str, int | None, int | None, int | None]
"""A row of `COVERAGE`: a gateway or a bus, and since when or until when; how many files or ns."""


def coverage(
    taken: "Sequence[Row]",
    span: Span,
    left_out: int,
    stepped: Iterable[Step] = (),
    drifted: Iterable[Drift] = (),
    cuts: "Cuts | None" = None,
    journals: Sequence[Unread] = (),
    ahead: Mapping[str, int] = MappingProxyType({}),
    margin_ns: int = MARGIN_NS,
) -> list[Gap]:
    """Find what was not looked at, from the rows of `pipeline.analysis.shared.inventory.take`.

    `span` was asked for; `left_out` files could not be read, and clocks have `stepped` and `drifted`. `cuts`
    are sides behind which frames are others. `journals` are not read. Clocks are known to be `ahead` if
    something was wrong; `margin_ns` is what was looked at beyond the bounds of the span.
    """
    topologies = list(inventory.topologies(taken))
    found = [
        (NOT_ASKED if span.gateways else NO_ROWS, name, None, None, None)
        for name in _missing(taken, topologies)
    ]
    files: list[Gap] = [(LEFT_OUT, "", None, None, left_out)] if left_out else []
    clocks = ((CLOCK, one.gateway, one.was_ns, one.at_ns, one.by_ns) for one in stepped)
    drifts = ((DRIFT, one.gateway, one.points[0][0], one.points[-1][0], one.by_ns) for one in drifted)
    ends = _ends(inventory.runs(taken), {one.gateway for one in journals}, ahead)
    unread = ((UNREAD, *one, None) for one in sorted(journals))
    apart = _apart(ahead, margin_ns) if span.is_bounded else ()
    return [*files, *found, *ends, *unread, *clocks, *drifts, *apart, *_unfollowed(cuts or {})]


def _apart(ahead: Mapping[str, int], margin_ns: int) -> Iterator[Gap]:
    """Yield the clocks that differ from the first, if some are apart by more than the margin of a span."""
    times = [0, *ahead.values()]
    if max(times) - min(times) > margin_ns:
        yield from ((APART, name, None, None, ns) for name, ns in sorted(ahead.items()))


def _unfollowed(cuts: "Cuts") -> Iterator[Gap]:
    for (hub, segment), cut in sorted(cuts.items()):
        if cut.why:
            what = UNKNOWABLE if cut.why == STRIPPED else UNFOLLOWED
            yield what, f"{segment} and {hub} is not known ({cut.why})", None, None, None


def _missing(taken: "Sequence[Row]", topologies: Sequence[Hubs]) -> list[str]:
    """Find the gateways that a topology names and no row is of, and buses that only others' trunks name."""
    gateways = {row.gateway for row in taken if row.kind != Kind.TOPOLOGY}
    hubs = {row.hub for row in taken if row.kind == Kind.FRAME}.union(*topologies)
    trunks = {name for one in topologies for hub in one.values() for name in hub.get("trunks", ())}
    return sorted(known(topologies) - gateways) + sorted(trunks - hubs)


def _ends(runs: Sequence[inventory.Run], unread: Collection[str], ahead: Mapping[str, int]) -> Iterator[Gap]:
    for run in runs:
        later = any(one.gateway == run.gateway and one.last_ns > run.last_ns for one in runs)
        if not run.is_ended and (later or run.gateway not in unread):
            what = RECORDING if is_open(run, runs, ahead) and not later else CUT_OFF
            yield what, run.gateway, run.last_ns, None, None
