"""`buscoupler syndicate URL...`: a syndication broker, whose subscribers name producers by a query."""

import argparse

from appliance.alone import serve_alone
from appliance.commandline.arguments import busy_poll_argument
from devices.syndication.device import SyndicationSpec
from devices.syndication.service import Syndication

NAME = "syndication"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("listen", nargs="+", metavar="URL", help="listen here: tcp://HOST:PORT")
    parser.add_argument(
        "--database", metavar="FILE",
        help="the file in which metadata survive a restart, or none (default: one in the state directory, "
        "named by the first URL)",
    )  # fmt: skip
    busy_poll_argument(parser)


def run(options: argparse.Namespace) -> int:
    spec = SyndicationSpec(on="", syndication=tuple(options.listen), database=options.database)
    return serve_alone(Syndication(NAME, spec), "syndicate", "syndication broker", options.busy_poll_us)
