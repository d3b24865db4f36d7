"""`buscoupler demo`: start the scene, let all members send, show the table, and check the ledgers."""

import argparse
import shutil
from pathlib import Path

from appliance.commandline.arguments import above_zero
from appliance.process.running import run_loop


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=above_zero,
        metavar="S",
        help="send for S seconds, then end (8; on a terminal it then goes on, with a page, until Ctrl-C)",
    )
    parser.add_argument(
        "--capture",
        type=Path,
        metavar="DIR",
        help="record all traffic in DIR (default: a new directory in /tmp)",
    )
    parser.add_argument("--no-capture", action="store_true", help="record nothing")
    parser.add_argument(
        "--rate", type=above_zero, default=50.0, metavar="N", help="frames a second from each sender (50)"
    )


def run(options: argparse.Namespace) -> int:
    from appliance.demo.play import is_recorded, new_capture, play  # late: help needs no package of the extra

    made = None if options.no_capture or options.capture else new_capture()
    capture = made or options.capture
    try:
        return run_loop(play(options.seconds, options.rate, capture and capture.absolute()))
    finally:
        if made is not None and not is_recorded(made):
            shutil.rmtree(made)
