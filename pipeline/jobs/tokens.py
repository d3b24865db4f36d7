"""`buscoupler pipeline tokens`: names that share a token, and tokens without a name."""

import argparse
from typing import Final

from pipeline.jobs.record import Job, OpenCapture, Table


def tables(options: argparse.Namespace, capture: OpenCapture) -> list[Table]:
    from pipeline.analysis import tokens

    unknown = tokens.unknown(capture.rows(), capture.names)
    return [
        Table("collisions", "Names that share a token", tokens.collisions(capture.spark, capture.names)),
        Table("unknown", "Tokens in the capture without a name", unknown, 50),
    ]


JOB: Final = Job(
    name="tokens",
    help="find names that share a token, and captured tokens without a name",
    examples=("buscoupler pipeline tokens capture --names plant.yaml",),
    tables=tables,
    faults=("collisions",),
    has_names=True,
)
