"""`buscoupler find`: list the catalogs, buses and brokers that announce themselves on the LAN."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

from appliance.commandline.arguments import above_zero
from appliance.probe.words import columns
from appliance.process.running import run_loop
from devices.dbp.beacon.finding import WITHIN_S, Found, find

STATUS_NOTHING = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=above_zero, default=WITHIN_S, metavar="N",
        help=f"listen for so long; each announces itself once a second (default: {WITHIN_S:g})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write one JSON object a line")


def run(options: argparse.Namespace) -> int:
    found = run_loop(find(options.seconds))
    for line in map(_told, found) if options.json else _table(found):
        print(line)
    if not found:
        print(f"nothing announced itself within {options.seconds:g} s", file=sys.stderr)
    return 0 if found else STATUS_NOTHING


def _told(one: Found) -> str:
    return json.dumps({"kind": one.beacon.kind, "name": one.beacon.name, "url": one.url})


def _table(found: Iterable[Found]) -> Iterator[str]:
    """Yield a line for each announcement, in columns."""
    return columns([(one.beacon.kind, one.url, one.beacon.name) for one in found])
