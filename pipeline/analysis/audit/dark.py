"""Darkness: times of which nobody knows what a gateway moved, so that it cannot be said what was lost there.

A recorder that is stopped writes a last row, by which its run ends. One that was killed together with its
gateway may have lost a second of rows. One that still records has rows that are in no file yet. A gateway
that is in a topology may have no rows at all.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

from pipeline.analysis.audit.episodes import EPISODE
from pipeline.analysis.audit.ways import Ways, reached
from pipeline.analysis.shared.frames import local_table
from pipeline.analysis.shared.inventory import Run
from pipeline.input.unread import Unread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from capture.schema import Hubs

CRASH_NS: Final = 1_000_000_000
"""A recorder syncs its rows once a second: so many may be lost with it."""
OPEN_NS: Final = 180_000_000_000
"""A recorder makes a file at least so often. One whose last row is so old beside the newest does not run."""
SLACK_NS: Final = 200_000_000
"""Rows of one frame may lie so far apart, on their way from one gateway to the next."""
_EVER_NS: Final = 1 << 62


class Dark(NamedTuple):
    """A time in which nothing is known of a gateway, in ns by one clock."""

    gateway: str
    from_ns: int
    to_ns: int


def is_open(run: Run, runs: Iterable[Run], ahead: Mapping[str, int]) -> bool:
    """Return whether a recorder may still write a run: it has no end, and so has the run with the newest row,
    which is not much newer, by the one clock."""

    def last_ns(one: Run) -> int:
        return one.last_ns - ahead.get(one.gateway, 0)

    newest = max(runs, key=last_ns)
    return not (run.is_ended or newest.is_ended) and last_ns(newest) - last_ns(run) < OPEN_NS


def known(topologies: "Iterable[Hubs]") -> set[str]:
    """Return the gateways that topologies name."""
    return {gateway for hubs in topologies for hub in hubs.values() for gateway in hub.get("gateways", ())}


def darkness(
    runs: Sequence[Run],
    gateways: Collection[str],
    ahead: Mapping[str, int],
    journals: Iterable[Unread] = (),
) -> Iterator[Dark]:
    """Yield when nothing is known of gateways: of those that have `runs`, and of the others in `gateways`.
    What is in `journals` is not read."""
    for name, from_ns, to_ns in journals:
        shift = ahead.get(name, 0)
        yield Dark(name, from_ns - shift, to_ns + CRASH_NS - shift)
    for gateway in sorted({run.gateway for run in runs}):
        shift = ahead.get(gateway, 0)
        own = sorted((run for run in runs if run.gateway == gateway), key=lambda run: run.first_ns)
        if own[0].first_seq:  # the rows before are not here
            yield Dark(gateway, -_EVER_NS, own[0].first_ns - shift)
        for run in own:
            if run.is_ended or any(one.first_ns <= run.last_ns < one.last_ns for one in own):
                continue
            later = [one.first_ns for one in own if one.first_ns > run.last_ns]
            to_ns = _EVER_NS if not later and is_open(run, runs, ahead) else run.last_ns + CRASH_NS
            yield Dark(gateway, run.last_ns - shift, min([to_ns, *later]) - shift)
    for gateway in sorted({*gateways} - {run.gateway for run in runs}):
        yield Dark(gateway, -_EVER_NS, _EVER_NS)


def dark(episode_rows: "DataFrame", found: Collection[Dark]) -> "DataFrame":
    """Select the episodes that were on their way in a darkness: `key`, `episode`, and gateways (`dark`)."""
    names = {"name": str, "from_ns": int, "to_ns": int}
    near = F.expr(f"to_at >= from_ns - {SLACK_NS} AND from_at <= to_ns + {SLACK_NS}")
    table = F.broadcast(local_table(episode_rows.sparkSession, names, list(found)))
    hit = episode_rows.select(*EPISODE, "from_at", "to_at").join(table, near)
    return hit.groupBy(*EPISODE).agg(F.sort_array(F.collect_set("name")).alias("dark"))


def serving(
    home: str, ways: Ways, hubs: Iterable[tuple[str, str]], topologies: "Iterable[Hubs]"
) -> dict[str, set[str]]:
    """Find, for each segment that frames of a home reach, the gateways that may carry them there.

    `hubs` are those that recorded (gateway and name), which the topologies may not name.
    """
    runners: dict[str, set[str]] = {}
    for gateway, hub in hubs:
        runners.setdefault(hub, set()).add(gateway)
    for name, hub_of in ((name, hub) for one in topologies for name, hub in one.items()):
        runners.setdefault(name, set()).update(hub_of.get("gateways", ()))
    found: dict[str, set[str]] = {}
    from_home = reached(home, ways)
    for bridge, pairs in ways.items():
        for _, other in (pair for pair in pairs if pair[0] in from_home):
            for target in reached(other, ways):
                found.setdefault(target, set()).update(runners.get(bridge, ()))
    return found
