"""Labels of faults: their explanation by counts, corrected by what else was the matter at the time.

Frames with the same counts and the same circumstances are a group. There are few groups, so they are
collected, and the tables of an audit are made of them. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bus.vacancy import NO_PEER
from capture.schema import Direction
from pipeline.analysis.audit.explain import (
    AT_SENDER,
    DUPLICATE,
    IN_BRIDGE,
    LOST,
    NO_BRIDGE,
    NOBODY,
    NOT_CAPTURED,
    NOT_RECORDED,
    ON_THE_WAY,
    RECORDER,
    Fault,
)

if TYPE_CHECKING:
    from pyspark.sql import Row

FENCED: Final = "fenced"
FAULT_PATTERN: Final = ("fault_pattern", "first", "flow", "begun")
CIRCUMSTANCES: Final = ("unseen", "dark", "absent", "silent", "last", "paused", "filtered")
SUMMARY: Final = {
    "kind": str, "stage": str, "segment": str, "gateway": str, "hub": str, "matched": str,
    "count": int, "first_ns": int, "last_ns": int,
}  # fmt: skip
AGREEMENT: Final = {"gateway": str, "hub": str, "ledger": int, "at_sender": int, "in_bridge": int}

PatternKey = tuple[int, str, int, int]
"""The values of `FAULT_PATTERN`."""


class FaultPattern(NamedTuple):
    """Counts that went wrong alike: the `episodes` that have them, the frames that `entered`, the faults.

    `begun` are the patterns that the frames start with (`pipeline.analysis.shared.filters.begun`). `needed`
    are the bridges without which a frame cannot reach a segment, `serving` the gateways that may carry it
    there. `passed` are bridges that did carry it.
    """

    key: PatternKey
    episodes: int
    entered: int
    faults: list[Fault]
    needed: Mapping[str, Sequence[str]] = {}
    serving: Mapping[str, Collection[str]] = {}
    passed: frozenset[str] = frozenset()

    @property
    def lost(self) -> set[str]:
        """Return the segments that the frames did not reach."""
        return {fault.segment for fault in self.faults if fault.kind == LOST and not fault.unheard}

    @property
    def lost_between(self) -> set[str]:
        """Return the segments that they did not reach although no bridge kept them."""
        return {fault.segment for fault in self.faults if _is_between(fault)}

    @property
    def deaf(self) -> set[str]:
        """Return the gateways of buses that did not hear what others of their segment heard."""
        return {fault.hub[0] for fault in self.faults if fault.unheard and fault.hub is not None}

    def bridges(self) -> set[str]:
        """Return the bridges that the lost frames had to pass."""
        return {bridge for segment in self.lost for bridge in self.needed.get(segment, ())}


def _is_between(fault: Fault) -> bool:
    return fault.kind == LOST and not fault.unheard and fault.stage in (ON_THE_WAY, AT_SENDER)


class Label(NamedTuple):
    """`n` faults of a frame on a `segment`, with the bridge to blame if there is one."""

    kind: str
    stage: str
    segment: str
    gateway: str | None
    hub: str | None
    n: int


class Group(NamedTuple):
    """The `episodes` with one fault pattern and one set of circumstances, from `first_ns` to `last_ns`.

    `label` is its number. `unseen` is the gateway of a recorder that had a hole then. Of those that are
    `dark` nobody knows what they moved then, and of those that are `absent` nothing was recorded then.
    `silent` are the bridges that were silent, and `last` the gateways that passed something last; `paused`
    are segments onto which nobody put anything, and `filtered` those to which filters let nothing.
    """

    label: int
    pattern: FaultPattern
    matched: str
    episodes: int
    first_ns: int
    last_ns: int
    unseen: str | None
    dark: Sequence[str]
    absent: Sequence[str]
    silent: Sequence[str]
    last: Sequence[str]
    paused: Sequence[str]
    filtered: Sequence[str] = ()

    def labels(self) -> Iterator[Label]:
        """Yield the faults of one of its episodes, by the names that the circumstances give them. What a
        filter held back is none."""
        return (self._labelled(one) for one in self.pattern.faults if not self._is_filtered(one))

    def _is_filtered(self, fault: Fault) -> bool:
        return fault.kind == LOST and not fault.unheard and fault.segment in self.filtered

    def _labelled(self, fault: Fault) -> Label:
        gateway, hub = fault.hub or (None, None)
        label = Label(fault.kind, fault.stage, fault.segment, gateway, hub, fault.n)
        if self.unseen is not None:
            return label._replace(kind=NOT_CAPTURED, stage=RECORDER, gateway=self.unseen, hub=None)
        if fault.unheard and gateway in self.absent:
            return label._replace(kind=NOT_CAPTURED, stage=NOT_RECORDED)
        if fault.unheard:
            return label._replace(kind=NOT_CAPTURED, stage=NOT_RECORDED) if gateway in self.dark else label
        if fault.kind != LOST:
            return label
        for carrier in sorted(self.pattern.serving.get(fault.segment, ())):
            if carrier in self.dark:
                return label._replace(kind=NOT_CAPTURED, stage=NOT_RECORDED, gateway=carrier, hub=None)
        its = self.pattern.needed.get(fault.segment, ())
        for bridge, gateway in zip(self.silent, self.last, strict=True):
            if bridge in its and bridge not in self.pattern.passed:
                return label._replace(stage=NO_BRIDGE, gateway=gateway, hub=bridge)
        if _is_between(fault) and fault.segment in self.paused:
            return label._replace(stage=NO_BRIDGE, gateway=None, hub=None)
        return label


def groups_of(found: "Iterable[Row]", patterns: Iterable[FaultPattern]) -> list[Group]:
    """Make groups of rows with `FAULT_PATTERN`, `CIRCUMSTANCES` and the other fields of `Group`."""
    known = {one.key: one for one in patterns}
    return [
        Group(
            row.label, known[tuple(row[name] for name in FAULT_PATTERN)], row.matched, row.episodes,
            row.first_ns, row.last_ns, row.unseen, row.dark or (), row.absent or (), row.silent or (),
            row["last"] or (), row.paused or (), row.filtered or (),
        )
        for row in found
    ]  # fmt: skip


def summary(groups: Iterable[Group]) -> list[tuple[Any, ...]]:
    """Sum up faults by kind, stage, segment, bridge and way of matching, with first and last time: rows of
    `SUMMARY`."""
    counts = Counter[tuple[str | None, ...]]()
    times: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
    for group in groups:
        for label in group.labels():
            key = (*label[:-1], group.matched)
            counts[key] += label.n * group.episodes
            times[key] += [group.first_ns, group.last_ns]
    return [(*key, counts[key], min(times[key]), max(times[key])) for key in sorted(counts, key=_nulls_first)]


def without_taken_back(
    rows: Iterable[tuple[Any, ...]], ledger: Iterable[Mapping[str, Any]]
) -> list[tuple[Any, ...]]:
    """Take out of the rows of `SUMMARY` the copies that a candidate took back out of its queues as its lease
    ended: they were handed on, and never sent, and the next one sent them."""
    back = Counter[tuple[str, str]]()
    for row in ledger:
        if row["reason"] == FENCED and row["dir"] == Direction.TX:
            back[row["hub"], row["bus"]] += row["count"]
    found = []
    for one in (dict(zip(SUMMARY, row, strict=True)) for row in rows):
        place = one["hub"], one["segment"]
        gone = min(one["count"], back[place]) if one["kind"] == DUPLICATE else 0
        back[place] -= gone
        if one["count"] > gone:
            found.append((*{**one, "count": one["count"] - gone}.values(),))
    return found


def with_nobody(
    rows: Iterable[tuple[Any, ...]],
    ledger: Iterable[Mapping[str, Any]],
    listening: Collection[tuple[str, str]],
) -> list[tuple[Any, ...]]:
    """Tell apart, in the rows of `SUMMARY`, the copies that had nobody to go to, and that nobody lost: by its
    ledger the bridge had no peer on a segment where it listens. `listening` are hubs and segments."""
    there = Counter[tuple[str, str, str]]()
    for row in ledger:
        if row["reason"] == NO_PEER and row["dir"] == Direction.TX and (row["hub"], row["bus"]) in listening:
            there[row["gateway"], row["hub"], row["bus"]] += row["count"]
    found = []
    for one in (dict(zip(SUMMARY, row, strict=True)) for row in rows):
        place = one["gateway"], one["hub"], one["segment"]
        is_asked = one["kind"] == LOST and one["stage"] == IN_BRIDGE
        count = min(one["count"], there[place]) if is_asked else 0
        there[place] -= count
        shares = {one["kind"]: one["count"] - count, NOBODY: count}
        found += [(*{**one, "kind": kind, "count": n}.values(),) for kind, n in shares.items() if n]
    return found


def agreement(groups: Iterable[Group], ledger: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Compare, for each bridge, the frames missing in the traffic with those that its ledger dropped: rows of
    `AGREEMENT`.

    Missing are those lost in the bridge on the way to a segment, each time; or at the sender (nobody heard
    what it sent), once however many segments are behind. A queue's drops after the hand-over are in the
    ledger alone if nobody listens behind it.
    """
    sums: dict[tuple[str | None, ...], Counter[str]] = defaultdict(Counter)
    for row in ledger:
        if row["dir"] == Direction.TX:
            sums[row["gateway"], row["hub"]]["ledger"] += row["count"]
    for group in groups:
        for hub, counts in _missing(group).items():
            sums[hub].update(counts)
    names = ("ledger", "at_sender", "in_bridge")
    return [(*hub, *(sums[hub][name] for name in names)) for hub in sorted(sums, key=_nulls_first)]


def _missing(group: Group) -> dict[tuple[str | None, ...], Counter[str]]:
    found: dict[tuple[str | None, ...], Counter[str]] = defaultdict(Counter)
    for label in (one for one in group.labels() if one.kind == LOST):
        count = label.n * group.episodes
        if label.stage == IN_BRIDGE:
            found[label.gateway, label.hub]["in_bridge"] += count
        elif label.stage == AT_SENDER:
            counts = found[label.gateway, label.hub]
            counts["at_sender"] = max(counts["at_sender"], count)
    return found


def _nulls_first(key: Sequence[str | None]) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in key)
