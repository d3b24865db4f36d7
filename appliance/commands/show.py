"""`buscoupler show FILE`: print a topology as a picture, in text or Mermaid."""

import argparse

from topologies.loader import load


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the topology; - is standard input")
    parser.add_argument("--format", choices=["text", "mermaid"], default="text", help="(default: text)")


def run(options: argparse.Namespace) -> int:
    from topologies.show import show

    print(show(load(options.file), options.format))
    return 0
