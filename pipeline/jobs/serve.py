"""`buscoupler pipeline serve`: a resident Spark Connect server on loopback, for jobs with `--remote sc://...`."""

import argparse
from typing import Final

from pipeline.engine.session import memory_argument
from pipeline.jobs.record import Job


def arguments(parser: argparse.ArgumentParser) -> None:
    memory_argument(parser)
    parser.add_argument("--port", type=int, default=15002, help="on loopback (15002)")


def process(options: argparse.Namespace) -> int:
    from pipeline.engine.serve import serve

    return serve(options.port, options.memory, "pipeline.jobs.rehearsal")


JOB: Final = Job(
    name="serve",
    help="run a resident Spark Connect server for jobs with --remote",
    arguments=arguments,
    process=process,
)
