"""`buscoupler schema`: print the JSON Schema of topologies, or where the shipped file of it is."""

import argparse
import sys

from topologies.writing import schema


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--path", action="store_true",
        help="print the path of the installed file instead, for the first line of a topology: "
        "# yaml-language-server: $schema=PATH",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print the schema with media and devices of all installed distributions, or the path of our own."""
    if options.path:
        print(schema.FILE)
    else:
        sys.stdout.write(schema.text(every=True))
    return 0
