"""`buscoupler rates`: how much travels, who talks most, how full the media are."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Final

from pipeline.errors import PipelineError
from pipeline.input.names import is_called
from pipeline.jobs.ranges import SPAN_S, whole
from pipeline.jobs.record import Job, OpenCapture, Table, option
from pipeline.output.tables import Progress

_WINDOWS: Final = 10  # shown; --parquet has all


def prepare(options: argparse.Namespace) -> None:
    """Refuse what is no capacity. Raises `PipelineError`."""
    capacities(options.capacity)


def capacities(words: Sequence[str]) -> dict[str, float]:
    """Return bytes a second by segment. Raises `PipelineError` for a word that is not SEGMENT=BYTES_PER_S."""
    pairs = ((name, _number(value)) for name, _, value in (word.rpartition("=") for word in words))
    found = dict(pairs)
    if not all(name and 0 < value < inf for name, value in found.items()):
        raise PipelineError("--capacity: give SEGMENT=BYTES_PER_S, for example can0=62500")
    return found


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return nan


def fitting(
    given: Mapping[str, float], buses: Sequence[str], warn: Callable[[str], None]
) -> dict[str, float]:
    """Return the capacities of segments, by whose name or a word of it they are given; tell of what is none
    of them."""
    found = dict[str, float]()
    for word, capacity in sorted(given.items(), key=lambda one: one[0] not in buses):  # whole names first
        fits = [bus for bus in buses if is_called(bus, word)]
        found = {**dict.fromkeys(fits, capacity), **found}
        if not fits:
            warn(f"--capacity {word}: no segment with frames has this name, but {', '.join(buses) or 'none'}")
    return found


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis import rates
    from pipeline.cache import cached

    rows, capacity = capture.rows(), capacities(options.capacity)
    windows = cached(rates.rates(rows, options.seconds, options.depth))
    if capacity:
        buses = sorted(row.bus for row in windows.select("bus").distinct().collect())
        capacity = fitting(capacity, buses, Progress(quiet=False))
    return [
        Table("prefixes", "By segment and prefix", rates.by_prefix(windows, options.depth), 50),
        Table("talkers", "Top talkers", rates.talkers(rows)),
        Table("media", "How full the media are", rates.media(windows, options.seconds, capacity)),
        Table("windows", "The last windows", rates.newest_first(windows, options.depth), _WINDOWS),
    ]


JOB: Final = Job(
    name="rates",
    help="count captured frames and bytes by pattern and time; top talkers; how full the media are",
    examples=("buscoupler rates capture --seconds 60 --depth 2",),
    options=(
        option("--seconds", type=SPAN_S, default=10.0, metavar="S", help="length of a window (10)"),
        option("--depth", type=whole(1, 255), default=1, metavar="N", help="tokens of a prefix (1)"),
        option(
            "--capacity",
            action="append",
            default=[],
            metavar="SEGMENT=BYTES_PER_S",
            help="what a medium can carry, to tell how full it is",
        ),
    ),
    tables=tables,
    prepare=prepare,
    has_names=True,
    is_command=True,
)
