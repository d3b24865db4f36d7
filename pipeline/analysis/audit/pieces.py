"""Pieces: what the driver holds of a capture, from one pass: the rows of suspects and of a sample one by one,
of all other frames when each hub had some (`pipeline.analysis.audit.suspects`).

By these it is seen whether a clock stepped or drifted, and when a bridge was silent: in most captures nothing
has to be read again for that.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capture.schema import BRIDGE, Direction, Kind
from pipeline.analysis.audit.few import values
from pipeline.analysis.audit.quiet import SLACK_NS
from pipeline.analysis.audit.replays import STOOD_BY
from pipeline.analysis.audit.sights import COLUMNS
from pipeline.analysis.shared.drifts import DRIFT_NS, Plan, planned
from pipeline.analysis.shared.inventory import Run
from pipeline.analysis.shared.service import GAP_MS, is_pause
from pipeline.analysis.shared.steps import AHEAD_NS, BACK_NS, Near

if TYPE_CHECKING:
    import pyarrow as pa

Spell = tuple[str, int, int, str]
"""A name, from when it was quiet, until when, and the gateway that was last before."""

_WIDEST_NS: Final = 250_000_000
"""The most between the times of two rows and those of the pieces that they are in."""
_RUN: Final = ("gateway", "boot")
_TIMES: Final = ("first_ns", "last_ns")
_ENDS: Final = ("first_seq", "first_ns", "last_seq", "last_ns")
_FRAME: Final = ("key", "gateway", "hub", "bus", "dir", "peer", "n", "first_ns")
_COVERED: Final = 0.75
"""The part of the time of a gateway's frames in which they have to show that its clock ran evenly."""


class Pieces(NamedTuple):
    """The `table` of pieces, each with `n` rows of one hub from `first_ns` to `last_ns`, which lie within a
    bin of `width_ns`. Those of suspects and of the sample have a `key`, those of the sample a `home`."""

    table: "pa.Table"
    width_ns: int

    def suspects(self) -> "pa.Table":
        """Return the rows of suspects, with the columns that `pipeline.analysis.audit.sights` takes."""
        import pyarrow.compute as pc

        is_one = pc.and_(self.table["key"].is_valid(), self.table["home"].is_null())
        return self.table.select(COLUMNS).filter(is_one)

    def sample(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows of the sample with these columns."""
        return values(self.table.select(names).filter(self.table["home"].is_valid()), names)

    def _of_frames(self, *names: str) -> "pa.Table":
        import pyarrow.compute as pc

        return self.table.select(names).filter(pc.equal(self.table["kind"], Kind.FRAME.value))

    def are_sent_again(self) -> bool:
        """Return whether a bridge put a suspect that it had not received, or only while it stood by."""
        put, entered = set[tuple[int, str]](), set[tuple[int, str]]()
        names = "key", "hub", "dir", STOOD_BY
        keyed = self.table.select(names).filter(self.table["key"].is_valid())
        for key, hub, way, stood_by in values(keyed, names):
            if hub.startswith(BRIDGE) and not stood_by:
                (put if way == Direction.TX else entered).add((key, hub))
        return not put <= entered

    def jumps(self) -> list[Near]:
        """Find where the time between rows that follow each other may be that of a clock's step. What came by
        CAN has the kernel's time, which a late gateway reads later."""
        import pyarrow.compute as pc

        found, pieces = list[Near](), self._of_frames("bus", "dir", *_RUN, *_ENDS)
        is_heard = pc.equal(pieces["dir"], Direction.RX.value)
        pieces = pieces.filter(pc.invert(pc.and_(is_heard, pc.starts_with(pieces["bus"], "can "))))
        for run in pieces.group_by([*_RUN]).aggregate([]).select([*_RUN]).to_pylist():
            found += ((run["gateway"], run["boot"], *seqs) for seqs in _jumps(_equal(pieces, run)))
        return found

    def are_even(self, runs: Sequence[Run]) -> bool:
        """Return whether frames of the sample show that no clock drifted, nearly all the time."""
        plan = planned(runs)
        if plan is None:
            return True
        heard, active = list(_first_heard(self.sample(_FRAME))), self._active(plan)
        gateways = sorted({run.gateway for run in runs})
        known = gateways[:1]
        for gateway in gateways[1:]:
            needed = _COVERED * active[gateway]
            if not any(_is_even(heard, other, gateway, plan, needed) for other in known):
                return False
            known.append(gateway)
        return True

    def _active(self, plan: Plan) -> Counter[str]:
        """Count the times of a plan at which each gateway had frames: one that stands by has them seldom."""
        import pyarrow.compute as pc

        pieces = self._of_frames("gateway", "first_ns")
        number = pc.divide(pc.subtract(pieces["first_ns"], plan.begin_ns), plan.step_ns)
        numbered = pieces.append_column("number", number)
        times = numbered.group_by(["gateway", "number"]).aggregate([])
        return Counter(times["gateway"].to_pylist())

    def silences(self, bridges: Collection[str], ahead: Mapping[str, int], end_ns: int) -> list[Spell]:
        """Find what `pipeline.analysis.audit.silent.silences` does."""
        began = self._takeovers(ahead)
        found = _spells(self._of_bridges(), "hub", bridges, ahead, end_ns, self.width_ns)
        return [
            (name, begin, end, last)
            for name, begin, end, last in found
            if is_pause(end - begin, GAP_MS) or any(begin <= at <= end + SLACK_NS for at in began[name])
        ]

    def pauses(self, segments: Collection[str], ahead: Mapping[str, int], end_ns: int) -> list[Spell]:
        """Find what `pipeline.analysis.audit.gaps.pauses` does."""
        import pyarrow.compute as pc

        pieces = self._of_bridges()
        put = pieces.filter(pc.equal(pieces["dir"], Direction.TX.value))
        found = _spells(put, "bus", segments, ahead, end_ns, GAP_MS * 1_000_000)
        return [one for one in found if is_pause(one[2] - one[1], GAP_MS)]

    def _of_bridges(self) -> "pa.Table":
        import pyarrow.compute as pc

        pieces = self._of_frames("gateway", "hub", "bus", "dir", *_TIMES)
        return pieces.filter(pc.starts_with(pieces["hub"], BRIDGE))

    def _takeovers(self, ahead: Mapping[str, int]) -> dict[str, list[int]]:
        """Find when candidates began to forward, by the name of their bridge."""
        import pyarrow.compute as pc

        told = self.table.filter(pc.equal(self.table["kind"], Kind.EVENT.value))
        found: dict[str, list[int]] = defaultdict(list)
        for hub, gateway, at_ns in values(told, ("hub", "gateway", "first_ns")):
            found[hub].append(at_ns - ahead.get(gateway, 0))
        return found


def _equal(pieces: "pa.Table", wanted: Mapping[str, object]) -> "pa.Table":
    import pyarrow.compute as pc

    for name, value in wanted.items():
        pieces = pieces.filter(pc.equal(pieces[name], value))
    return pieces


def _jumps(pieces: "pa.Table") -> Iterator[tuple[int, int]]:
    """Yield the numbers of rows, of one run, between which its clock may have been set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = _ENDS[:2], _ENDS[2:]
    both = pa.concat_tables(pieces.select(names).rename_columns(["seq", "ns"]) for names in ends)
    in_order = both.sort_by([("seq", "ascending"), ("ns", "ascending")])
    apart = pc.pairwise_diff(in_order["ns"].combine_chunks())
    is_back, is_ahead = pc.less(apart, _WIDEST_NS - BACK_NS), pc.greater(apart, AHEAD_NS - _WIDEST_NS)
    places = pc.indices_nonzero(pc.or_(is_back, is_ahead)).to_pylist()
    seqs = in_order["seq"]
    return ((seqs[place - 1].as_py(), seqs[place].as_py()) for place in places)


def _first_heard(rows: Iterable[tuple[int, str, str, str, int, int, int, int]]) -> Iterator[dict[str, int]]:
    """Yield when each gateway had a frame first, of frames to which no other was equal."""
    times: dict[int, dict[str, int]] = defaultdict(dict)
    places: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    several = set[int]()
    for key, gateway, hub, bus, way, peer, n, at_ns in rows:
        place = gateway, hub, bus, way, peer
        if n > 1 or place in places[key]:
            several.add(key)
        places[key].add(place)
        times[key][gateway] = min(at_ns, times[key].get(gateway, at_ns))
    return (its for key, its in times.items() if key not in several)


def _is_even(heard: Sequence[Mapping[str, int]], one: str, other: str, plan: Plan, needed: float) -> bool:
    """Return whether two gateways had frames at one and the same distance, at as many times as `needed` by
    the clock of the other."""
    both = [(its[one], its[other]) for its in heard if one in its and other in its]
    apart = [second - first for first, second in both]
    slots = {(second - plan.begin_ns) // plan.step_ns for _, second in both}
    return len(slots) >= needed and max(apart) - min(apart) < DRIFT_NS // 2


def _spells(
    pieces: "pa.Table",
    name: str,
    names: Collection[str],
    ahead: Mapping[str, int],
    end_ns: int,
    width_ns: int,
) -> Iterator[Spell]:
    """Yield what `pipeline.analysis.audit.quiet.spells` finds, of some `names` in a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    its = pieces.filter(pc.is_in(pieces[name], value_set=pa.array(sorted(names), pa.string())))
    numbered = its.append_column("bin", pc.divide(its["first_ns"], width_ns))
    bins = numbered.group_by([name, "gateway", "bin"]).aggregate([("first_ns", "min"), ("last_ns", "max")])
    by_name: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for what, gateway, first, last in values(bins, (name, "gateway", "first_ns_min", "last_ns_max")):
        shift = ahead.get(gateway, 0)
        by_name[what].append((first - shift, last - shift, gateway))
    for what, some in by_name.items():
        some.sort()
        starts = [*(begin for begin, *_ in some[1:]), end_ns]
        until, last = some[0][1:]
        for (_, end, gateway), after in zip(some, starts, strict=True):
            until, last = max((until, last), (end, gateway))
            yield what, until, after, last
