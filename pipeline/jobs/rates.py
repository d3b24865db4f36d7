"""`buscoupler rates`: how much travels, who talks most, how full the media are."""

import argparse
from typing import Final

from pipeline.errors import PipelineError
from pipeline.jobs.ranges import above, whole
from pipeline.jobs.record import Job, OpenCapture, Table, option


def capacities(words: list[str]) -> dict[str, float]:
    """Return bytes a second by segment. Raises `PipelineError` for a word that is not SEGMENT=BYTES_PER_S."""
    try:
        return {name: float(value) for name, _, value in (word.rpartition("=") for word in words)}
    except ValueError:
        raise PipelineError("--capacity: give SEGMENT=BYTES_PER_S, for example can0=62500") from None


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis import rates
    from pipeline.cache import cached

    rows, capacity = capture.rows(), capacities(options.capacity)
    windows = cached(rates.rates(rows, options.seconds, options.depth))
    return [
        Table("prefixes", "By segment and prefix", rates.by_prefix(windows, options.depth), 50),
        Table("talkers", "Top talkers", rates.talkers(rows)),
        Table("media", "How full the media are", rates.media(windows, options.seconds, capacity)),
        Table("windows", "The last windows", windows.orderBy("start_ns", "bus"), 0),
    ]


JOB: Final = Job(
    name="rates",
    help="count captured frames and bytes by pattern and time; top talkers; how full the media are",
    examples=("buscoupler rates capture --seconds 60 --depth 2",),
    options=(
        option("--seconds", type=above(0), default=10.0, metavar="S", help="length of a window (10)"),
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
    has_names=True,
    is_command=True,
)
