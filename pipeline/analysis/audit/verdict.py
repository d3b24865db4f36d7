"""The verdict on a capture, from the tables of its audit: a color, one sentence and an exit status. Pure.

Red: copies of frames are missing, doubled or echoed. Amber: all were handed on, but ledgers count drops in
queues after that, or the capture cannot tell. Green: all else. Drops that a policy intends do not make the
exit status 1, nor do frames that others miss because of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from bus.reasons import kind_of
from bus.vacancy import NO_PEER
from capture.schema import Direction
from pipeline.analysis.audit import comparison
from pipeline.analysis.audit.coverage import (
    APART,
    CLOCK,
    LEFT_OUT,
    NO_ROWS,
    NOT_ASKED,
    UNFOLLOWED,
    UNKNOWABLE,
    said,
)
from pipeline.analysis.audit.explain import AT_SENDER, LOST, NOBODY, NOT_CAPTURED, NOT_RECORDED, UPSTREAM

Row = Any  # of a table: a mapping, or a row of pyspark
Tables = Mapping[str, Sequence[Row]]

_NO_NAME: Final = "no name"
_FILTERS: Final = ("pattern", "event", "no frame", _NO_NAME)  # what these keep out was not handed on before
_FAULTS: Final = {
    "lost": "missing on a segment", "duplicate": "doubled", "echo": "echoed to where they came from",
}  # fmt: skip
_LACKING: Final = {NOT_ASKED, NO_ROWS, LEFT_OUT, CLOCK, APART, UNFOLLOWED}
_BUS: Final = "bus "
_ONCE: Final = "all handed on once"
_NOTHING: Final = "no frame of a bus is here, so nothing was checked; `buscoupler signals` reads wires"
_WHERE: Final = "to every segment that their kind reaches"


class Verdict(NamedTuple):
    """The first line of an audit. `status` is the exit status."""

    color: Literal["green", "amber", "red"]
    text: str
    status: int

    @property
    def line(self) -> str:
        """The verdict as one line."""
        return f"{self.color.capitalize()}: {self.text}."


def judge(tables: Tables) -> Verdict:
    """Judge the tables `totals`, `summary`, `ledger`, `agreement`, `capture` and `coverage` of an audit."""
    faults, dropped = _faults(tables), _drops(tables["ledger"])
    near, absent = _unsure(tables["summary"])
    beyond = tables.get("coverage", ())
    unknown = {row["what"] for row in beyond}
    nobody = sum(row["count"] for row in tables["summary"] if row["kind"] == NOBODY)
    excused = sum(row["count"] for row in tables["summary"]) - faults.total() - near - absent.total() - nobody
    rejected = _rejects(tables["ledger"])
    missed = sum(row["missed"] + row["holes"] for row in tables["capture"])
    unintended = sum(count for reason, count in dropped.items() if kind_of(reason) != "policy")
    (totals,) = tables["totals"]
    is_blind = not faults and not totals["crossed"]
    is_whole = not (excused or nobody or unknown & {*_LACKING, UNKNOWABLE})
    sides = tables.get("translated", ())
    mute = comparison.faults(sides)
    parts = [_head(totals, faults, is_whole and not mute, bool(missed)), _dropped(dropped, unintended)]
    parts += [f"{count:,} lost in translation {where}" for where, count in mute.items()]
    parts += [*comparison.said(sides), *_copies(excused, nobody, tables["ledger"])]
    parts += [*_inputs(rejected, missed, near)]
    parts += [_not_recorded(where, count) for where, count in absent.items()]
    parts += said(beyond)
    lacks = {LEFT_OUT, CLOCK, APART} & unknown or any(row["name"].startswith(_BUS) for row in beyond)
    amber = dropped or rejected or missed or absent or is_blind or unknown & _LACKING
    status = int(bool(faults or mute or unintended or missed or absent or is_blind or lacks))
    return Verdict(
        "red" if faults or mute else "amber" if amber else "green", "; ".join(filter(None, parts)), status
    )


def _copies(excused: int, nobody: int, ledger: Iterable[Row]) -> Iterator[str]:
    """Yield what became of copies that nobody lost."""
    if excused:
        yield f"so {excused:,} copies are missing further on"
    if nobody:
        yield f"{nobody:,} copies had nobody to go to: no peer had dialled"
    if nameless := sum(row["count"] for row in ledger if row["reason"] == _NO_NAME):
        yield (
            f"{nameless:,} stayed on their side because `prefix`, `strip` and `rename` have no name for them "
            "beyond: `buscoupler explain` says at which side"
        )


def _inputs(rejected: Counter[str], missed: int, near: int) -> Iterator[str]:
    """Yield what did not come in, or is not judged."""
    if rejected:
        yield f"{rejected.total():,} inputs rejected ({_listed(rejected)})"
    if missed:
        yield f"the recorders missed {missed:,} rows, so more may have passed than is checked here"
    if near:
        yield f"{near:,} copies that passed near that are not judged"


def _not_recorded(where: str, count: int) -> str:
    if where.startswith(_BUS):
        return f"{where} was not recorded while {count:,} copies were due there"
    return f"nothing is known of {where} while {count:,} copies were due that it may have carried"


def _head(totals: Row, faults: Counter[str], is_whole: bool, is_least: bool) -> str:
    frames, crossed = totals["frames"], totals["crossed"]
    if not frames:
        return _NOTHING
    entered = f"{'at least ' * is_least}{_count(frames, 'frame')} entered"
    if faults:
        found = (f"{faults[kind]:,} {words}" for kind, words in _FAULTS.items() if faults[kind])
        return f"{entered}; of their copies, {', '.join(found)}"
    if not crossed:
        return f"{entered}; none was seen on another segment, so nothing is known of their delivery"
    once = f"{_ONCE} {_WHERE}" if is_whole else _ONCE
    return f"{entered}, {once}" if crossed == frames else f"{entered}; {crossed:,} had to cross, {once}"


def _dropped(dropped: Counter[str], unintended: int) -> str:
    if not dropped:
        return ""
    whose = f"{unintended:,} of them by no policy" if unintended else "all by policy"
    return f"{dropped.total():,} then dropped in queues ({_listed(dropped)}), {whose}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _drops(ledger: Sequence[Row]) -> Counter[str]:
    """Count what was dropped after it was handed on, by reason."""
    found = Counter[str]()
    for row in ledger:
        if row["dir"] == Direction.TX and _is_loss(row["reason"]):
            found[row["reason"]] += row["count"]
    return found


def _is_loss(reason: str) -> bool:
    return reason not in (*_FILTERS, NO_PEER) and kind_of(reason) != "elsewhere"


def _rejects(ledger: Sequence[Row]) -> Counter[str]:
    """Count input that did not become a frame because something was wrong with it, by reason."""
    found = Counter[str]()
    for row in ledger:
        if (
            row["dir"] == Direction.RX
            and row["reason"] != comparison.UNTOLD
            and kind_of(row["reason"]) == "trouble"
        ):
            found[row["reason"]] += row["count"]
    return found


def _unsure(summary: Sequence[Row]) -> tuple[int, Counter[str]]:
    """Count the copies that are not judged: near a hole, and by the bus that was not recorded."""
    near, absent = 0, Counter[str]()
    for row in (row for row in summary if row["kind"] == NOT_CAPTURED):
        if row["stage"] == NOT_RECORDED:
            absent[f"{row['hub']} of {row['gateway']}" if row["hub"] else row["gateway"]] += row["count"]
        else:
            near += row["count"]
    return near, absent


def _faults(tables: Tables) -> Counter[str]:
    """Count the faults by kind, without losses that a policy of the sending bridge intended."""
    intended = _intended(tables)
    judged = [row for row in tables["summary"] if row["kind"] not in (NOT_CAPTURED, NOBODY)]
    rest = [row for row in judged if not _is_excused(row, intended)]
    if len(rest) < len(judged) and all(row["stage"] == UPSTREAM for row in rest):
        rest = []  # these are the same frames, further on
    found = Counter[str]()
    for row in rest:
        found[row["kind"]] += row["count"]
    return found


def _is_excused(row: Row, intended: set[tuple[str, str]]) -> bool:
    at_sender = row["kind"] == LOST and row["stage"] == AT_SENDER
    return at_sender and (row["gateway"], row["hub"]) in intended


def _intended(tables: Tables) -> set[tuple[str, str]]:
    """Find the bridges whose policies dropped at least as much as nobody received of what they sent."""
    by_policy = Counter[tuple[str, str]]()
    for row in tables["ledger"]:
        if row["dir"] == Direction.TX and _is_loss(row["reason"]) and kind_of(row["reason"]) == "policy":
            by_policy[row["gateway"], row["hub"]] += row["count"]
    missing = {(row["gateway"], row["hub"]): row["at_sender"] for row in tables["agreement"]}
    return {bridge for bridge, count in missing.items() if count <= by_policy[bridge]}
