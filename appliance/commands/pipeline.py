"""`buscoupler audit DIRECTORY` and the other jobs of the pipeline; `buscoupler pipeline JOB` has them all."""

import argparse

from pipeline import commands


def arguments(parser: argparse.ArgumentParser) -> None:
    word = parser.prog.rpartition(" ")[2]
    if word in commands.ALONE:
        commands.arguments(parser, word)
        return
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    for name, text in commands.JOBS.items():
        commands.arguments(jobs.add_parser(name, help=text, description=text), name)


def run(options: argparse.Namespace) -> int:
    return commands.run(options)
