"""`buscoupler audit DIRECTORY` and the other jobs on captures; `buscoupler pipeline JOB` has them all."""

import argparse

from appliance.commandline.names import names_of
from appliance.commandline.parsing import Parser
from pipeline import jobs
from pipeline.jobs import runner


def arguments(parser: Parser) -> None:
    word = parser.prog.rpartition(" ")[2]
    if word in jobs.NAMES:
        return jobs.find(word).add_arguments(parser, names_of)
    parsers = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    for job in jobs.every():
        below = parsers.add_parser(job.name, help=job.help, description=job.help)
        below.tell(job.examples, job.problem)
        job.add_arguments(below, names_of)


def run(options: argparse.Namespace) -> int:
    return runner.run(jobs.find(options.job), options)
