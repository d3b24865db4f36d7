"""`buscoupler pipeline tokens`: names that share a token, and tokens without a name."""

import argparse
from typing import Final

from pipeline.jobs.record import Job, OpenCapture, Table, option


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis import tokens

    names = tokens.names(capture.spark, options.names)
    unknown = tokens.unknown(capture.rows(), names)
    return [
        Table("collisions", "Names that share a token", tokens.collisions(names)),
        Table("unknown", "Tokens in the capture without a name", unknown, 50),
    ]


JOB: Final = Job(
    name="tokens",
    help="find names that share a token, and captured tokens without a name",
    options=(option("--names", metavar="FILE", required=True, help="the names in use, one a line"),),
    tables=tables,
    faults=("collisions",),
)
