"""`buscoupler broker URL...`: a TMQ broker, which also leases bridges that stand in for each other."""

import argparse
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable

from appliance.probe.words import whole_above_zero
from appliance.serve import serve
from bus.hub import Hub
from bus.leases.table import Leases, LeaseTable
from bus.tmq.broker.service import Broker

LEASE_MS = 300


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


class BrokerService:
    """A broker and the leases that it gives."""

    def __init__(self, listen: Iterable[str], peers: Iterable[str], exact: bool, lease_ms: int) -> None:
        self.leases = Leases(LeaseTable(lease_ms))
        self.broker = Broker(listen, peers, self.leases.on_bridge, classic_prefixes=not exact)
        self.hubs: Callable[[], Iterable[Hub]] = self.broker.hubs

    def open(self, loop: AbstractEventLoop) -> None:
        self.broker.open(loop)
        self.leases.open(loop)

    def close(self) -> None:
        self.leases.close()
        self.broker.close()


def run(options: argparse.Namespace) -> int:
    service = BrokerService(options.listen, options.peer, options.exact, options.lease_ms)

    def announce() -> None:
        for url in service.broker.urls:
            print(f"broker on {url}", flush=True)

    return serve(service, announce)
