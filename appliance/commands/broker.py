"""`buscoupler broker URL...`: a TMQ broker, which also leases bridges that stand in for each other."""

import argparse
import time

from appliance.probe.words import whole_above_zero
from appliance.serve import serve
from appliance.status.places import process_directory, status_socket
from appliance.status.server import Attended
from appliance.status.snapshot import View
from bus.leases.service import LeasingBroker
from bus.leases.wire import LEASE_MS


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("listen", nargs="+", metavar="URL", help="listen here: tcp://HOST:PORT")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="URL",
        help="another broker, to share registrations with (repeatable; each names the others)",
    )  # fmt: skip
    parser.add_argument(
        "--exact", action="store_true",
        help="give clients only patterns that they asked for to the letter: some of 2015 end otherwise",
    )  # fmt: skip
    parser.add_argument(
        "--lease-ms", type=whole_above_zero, default=LEASE_MS, metavar="N", help=f"of a bridge ({LEASE_MS})"
    )


def run(options: argparse.Namespace) -> int:
    service = LeasingBroker(
        options.listen, options.peer, options.lease_ms, classic_prefixes=not options.exact
    )

    def announce() -> None:
        for url in service.broker.urls:
            print(f"broker on {url}", flush=True)

    view = View(
        program="broker",
        name=service.broker.urls[0],
        brokers=lambda: [service],
        started_ns=time.time_ns(),
    )
    return serve(Attended(service, process_directory("broker") / status_socket(()), view), announce)
