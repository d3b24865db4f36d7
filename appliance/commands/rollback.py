"""`buscoupler rollback FILE`: let gateways go back from the last roll-out, to the file before it."""

import argparse
import sys

from appliance.commands.deploy import hosts_of, way_to, where_arguments, who
from appliance.rollout.runner import ask_each
from appliance.rollout.steps import Answer, Asked
from bus.errors import BusError


def arguments(parser: argparse.ArgumentParser) -> None:
    where_arguments(parser)
    parser.add_argument("--force", action="store_true", help="also over files that were changed by hand")


def run(options: argparse.Namespace) -> int:
    try:
        hosts = hosts_of(options)
        way = way_to(options, hosts)
    except BusError as error:
        print(f"buscoupler rollback: {error}", file=sys.stderr)
        return 1

    def back(gateway: str) -> Answer | str:
        return way.ask(Asked("back", gateway, by=who(), force=options.force))

    bad = False
    for gateway, answer in zip(hosts, ask_each(back, list(hosts)), strict=True):
        wrong = answer if isinstance(answer, str) else answer.error
        bad = bad or bool(wrong)
        print(f"{gateway}: {wrong or 'went back'}", file=sys.stderr if wrong else sys.stdout)
    return int(bad)
