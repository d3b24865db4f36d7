"""Clocks that moved while a capture was recorded: rows get the times that others have, and who reads an audit
is told. They are looked at once something is wrong."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis.shared import drifts, inventory, restarts, steps, sums
from pipeline.analysis.shared.clocks import Pair
from pipeline.analysis.shared.drifts import Drift
from pipeline.analysis.shared.places import Places
from pipeline.analysis.shared.steps import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from pipeline.analysis.audit.suspects import Looked


class Clocks(NamedTuple):
    """The clocks that `stepped` and that `drifted`, whose rows have been given other times. `are_runs_known`:
    it was looked whether one was another after a restart."""

    stepped: Sequence[Step] = ()
    drifted: Sequence[Drift] = ()
    are_runs_known: bool = False


def moved(
    rows: "DataFrame", entries: "list[Row]", at: Places, looked: "Looked", before: Clocks | None
) -> "tuple[DataFrame, Clocks] | None":
    """Give rows the times that clocks would have had if none had moved, and tell which did; None if none did.

    `before` are those whose rows have other times already.
    """
    if len({gateway for gateway, _ in at.hubs}) < 2:
        return None
    runs = inventory.runs(entries)
    if before is None:
        timed, clocks = _in_step(rows, runs, looked)
        if clocks.stepped or clocks.drifted:
            return timed, clocks
    before = before or Clocks()
    if before.are_runs_known or not restarts.are_several(runs):
        return None
    found = restarts.apart(_pairs(rows, at, looked, runs), runs, steps.BACK_NS, by_one_way=True)
    stepped = [*before.stepped, *found]
    timed = restarts.corrected(rows, found, runs)
    return (timed, Clocks(stepped, before.drifted, are_runs_known=True)) if found else None


def _in_step(
    rows: "DataFrame", runs: Sequence[inventory.Run], looked: "Looked"
) -> "tuple[DataFrame, Clocks]":
    """Look for steps and drifts. Rows are read again if the pieces leave a doubt."""
    pieces = looked.pieces
    found = steps.steps(rows, runs, None if pieces is None else pieces.jumps())
    timed, stepped = steps.corrected(rows, found), found.found
    is_even = not stepped and pieces is not None and pieces.are_even(runs)
    drifted = [] if is_even else drifts.drifts(timed, runs)
    return drifts.corrected(timed, drifted) if drifted else timed, Clocks(stepped, drifted)


def _pairs(rows: "DataFrame", at: Places, looked: "Looked", runs: Sequence[inventory.Run]) -> list[Pair]:
    """Measure runs by the frames without a fault of the sample."""
    if looked.pieces is not None:
        return restarts.pairs_of(looked.pieces.sample(restarts.COLUMNS), runs)
    sample = F.broadcast(looked.wanted.where("home IS NOT NULL").select("key"))
    return restarts.planned_pairs(sums.with_key(rows, at).join(sample, "key"), runs)
