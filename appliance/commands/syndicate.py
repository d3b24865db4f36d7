"""`buscoupler syndicate URL...`: a syndication broker, whose subscribers name producers by a query."""

import argparse
import time
from asyncio import AbstractEventLoop
from collections.abc import Iterable

from appliance.ledger import say_ledger
from appliance.local.door import Attended
from appliance.local.places import process_directory
from appliance.serve import serve
from appliance.status.client import status_socket
from appliance.status.door import status_door
from appliance.status.snapshot import View
from bus.hub import Hub
from devices.service import Service
from devices.syndication.device import SyndicationSpec
from devices.syndication.service import Syndication

NAME = "syndication"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("listen", nargs="+", metavar="URL", help="listen here: tcp://HOST:PORT")
    parser.add_argument(
        "--database", metavar="FILE", type=_file,
        help="the file in which metadata survive a restart, or none (default: one in the state directory, "
        "named by the first URL)",
    )  # fmt: skip


def _file(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("name a file, or write none")
    return text


class Alone:
    """A service that joins no bus, in a process of its own."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._hub = Hub(service.name)
        for link, stats in service.ledgers.items():
            self._hub.keep(link, stats)

    def open(self, loop: AbstractEventLoop) -> None:
        self.service.start(loop)

    def hubs(self) -> Iterable[Hub]:
        return (self._hub,)

    def close(self) -> None:
        self.service.close()


def run(options: argparse.Namespace) -> int:
    spec = SyndicationSpec(on="", syndication=tuple(options.listen), database=options.database)
    service = Syndication(NAME, spec)
    alone = Alone(service)

    def announce() -> None:
        for url in service.urls:
            print(f"syndication broker on {url}", flush=True)

    view = View(
        program="syndicate",
        name=service.urls[0],
        hubs=alone.hubs,
        brokers=lambda: [service],
        started_ns=time.time_ns(),
    )
    door = status_door(process_directory("syndicate") / status_socket(()), view)
    return serve(Attended(alone, door), announce, lambda: say_ledger(alone.hubs()))
