"""`buscoupler completion SHELL`: print the script that completes the command line in a shell."""

import argparse
import sys

from appliance.completion import SHELLS, commands


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(SHELLS), metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def run(options: argparse.Namespace) -> int:
    sys.stdout.write(SHELLS[options.shell](commands(options.every())))
    return 0
