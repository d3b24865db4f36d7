"""The coverage of an audit: the words for what was not looked at, so that nothing is said of it. Pure, and
without Spark: `pipeline.analysis.audit.uncovered` finds it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pipeline.output.tables import clock

COVERAGE: Final = {"what": str, "name": str, "first_ns": int, "last_ns": int, "n": int}

NOT_ASKED: Final = "not asked for"
NO_ROWS: Final = "no rows"
LEFT_OUT: Final = "files left out"
RECORDING: Final = "still recording"
UNREAD: Final = "in no file yet"
CUT_OFF: Final = "ends without a last row"
CLOCK: Final = "clock stepped"
DRIFT: Final = "clock drifted"
APART: Final = "clock apart"
"""A clock that differs from others by more than the margin of a span, so that not all rows of its frames are
looked at."""
UNFOLLOWED: Final = "names not followed"
UNKNOWABLE: Final = "names that nobody can follow"
"""Names that nobody can follow by the topology, whatever a capture has: a healthy plant is not Amber for it.
"""


def said(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield words for the first line of an audit, from rows of `COVERAGE`."""
    found = list(rows)
    for what, words in _WORDS.items():
        some = [row for row in found if row["what"] == what]
        if some:
            names = _named([row["name"] for row in some])
            last = max((row["first_ns"] or 0 for row in some), default=0)
            yield words.format(names=names, n=sum(row["n"] or 0 for row in some), at=clock(last))
    for row in (row for row in found if row["what"] in (UNFOLLOWED, UNKNOWABLE)):
        yield f"what passed between {row['name']}"
    for row in (row for row in found if row["what"] == CLOCK):
        yield f"the clock of {row['name']} stepped by {row['n'] / 1e9:+,.1f} s at {clock(row['first_ns'])}"
    for row in (row for row in found if row["what"] == DRIFT):
        yield f"the clock of {row['name']} drifted by {row['n'] / 1e9:+,.1f} s"
    for row in (row for row in found if row["what"] == APART):
        yield (
            f"the clock of {row['name']} is {row['n'] / 1e9:+,.1f} s from others, so rows of it were not "
            "looked at: give a longer time by --from and --to"
        )


def apart_ns(rows: Iterable[Any]) -> int:
    """Return how far clocks are apart, by rows of `COVERAGE`; 0 if no further than the margin."""
    times: list[int] = [0, *(row["n"] for row in rows if row["what"] == APART)]
    return max(times) - min(times)


_WORDS: Final = {
    LEFT_OUT: "{n:,} files were left out",
    NOT_ASKED: "{names} was not looked at",
    NO_ROWS: "nothing of {names} is in this capture",
    RECORDING: "{names} still records, and is looked at up to {at}",
    UNREAD: "the last rows of {names} are in no file yet",
}


def _named(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
