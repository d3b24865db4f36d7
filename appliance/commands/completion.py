"""`buscoupler completion SHELL`: print the script that completes the command line in a shell."""

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def run(options: argparse.Namespace) -> int:
    from appliance.commandline import completion  # late: the other commands do not need it

    sys.stdout.write(completion.SHELLS[options.shell](completion.commands(options.described())))
    return 0
