"""`buscoupler warm`: a class archive, with which Spark starts in half the time."""

import argparse
from typing import Final

from pipeline.jobs.record import Job


def process(options: argparse.Namespace) -> int:
    from pipeline.jobs.rehearsal import archive_classes

    return archive_classes(options.memory)


JOB: Final = Job(
    name="warm",
    help="make the class archive with which Spark starts in half the time, once",
    examples=("buscoupler warm",),
    process=process,
    is_command=True,
)
