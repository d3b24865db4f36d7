"""`buscoupler audit DIRECTORY` and the other jobs on captures; `buscoupler pipeline JOB` has them all."""

import argparse
from typing import Final

from appliance.commandline.arguments import argument
from appliance.commandline.names import names_of
from appliance.commandline.parsing import Parser
from bus.quantity.quantity import Quantity
from pipeline import jobs
from pipeline.jobs import runner
from pipeline.jobs.record import Files


def arguments(parser: Parser) -> None:
    word = parser.prog.rpartition(" ")[2]
    if word in jobs.NAMES:
        return jobs.find(word).add_arguments(parser, _FILES)
    parsers = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    for job in jobs.every():
        below = parsers.add_parser(job.name, help=job.help, description=job.help)
        below.tell(job.examples, job.problem)
        job.add_arguments(below, _FILES)


def _quantities(file: str) -> tuple[Quantity, ...]:
    """Return what a topology knows of the values on its buses. Raises `BusError`."""
    from topologies.loading.loader import load
    from topologies.quantities import quantities

    return tuple(quantities(load(file)))


_FILES: Final = Files(names_of, argument(_quantities))


def run(options: argparse.Namespace) -> int:
    return runner.run(jobs.find(options.job), options)
