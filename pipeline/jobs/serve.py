"""`buscoupler pipeline serve`: a resident Spark Connect server on loopback, for jobs with `--remote sc://...`."""

import argparse
from typing import Final

from pipeline.jobs.ranges import whole
from pipeline.jobs.record import Job, option


def process(options: argparse.Namespace) -> int:
    from pipeline.engine.serve import serve

    return serve(options.port, options.memory, "pipeline.jobs.rehearsal")


JOB: Final = Job(
    name="serve",
    help="run a resident Spark Connect server for jobs with --remote",
    examples=("buscoupler pipeline serve",),
    options=(option("--port", type=whole(0, 65535), default=15002, help="on loopback (15002)"),),
    process=process,
)
