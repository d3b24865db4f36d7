"""`buscoupler pipeline stop`: end the Spark that commands leave behind for the next ones."""

import argparse
from typing import Final

from pipeline.jobs.record import Job


def process(options: argparse.Namespace) -> int:
    from pipeline.engine import server

    place = server.directory()
    print("Spark has ended" if place.is_dir() and server.stop(place) else "no Spark is running")
    return 0


JOB: Final = Job(
    name="stop",
    help="end the Spark that stays for a while after a command",
    examples=("buscoupler pipeline stop",),
    process=process,
    engines=(),
)
