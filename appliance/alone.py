"""Runs a service that joins no bus, in a process of its own."""

import time
from asyncio import AbstractEventLoop
from collections.abc import Iterable

from appliance.local.places import process_directory
from appliance.local.responder import WithResponders
from appliance.process.serve import serve
from appliance.status.client import status_socket
from appliance.status.ending import last_ledger
from appliance.status.responder import status_responder
from appliance.status.rows import waiting_rows
from appliance.status.view import Besides, View
from bus.hub import Hub, LinkView
from devices.service import Service


class Alone:
    """A service of no bus, in the form that `serve` runs. Its ledgers form one hub."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.hub = Hub(service.name)
        for link, stats in service.ledgers.items():
            self.hub.keep(link, stats)

    def open(self, loop: AbstractEventLoop) -> None:
        self.service.start(loop)

    def hubs(self) -> tuple[Hub, ...]:
        return (self.hub,)

    def close(self) -> None:
        self.service.close()


def say_addresses(title: str, urls: Iterable[str], bindings: Iterable[LinkView]) -> None:
    """Print where a service listens, and for which addresses it waits."""
    waiting = {binding.url for binding in bindings if binding.state != "up"}
    for url in urls:
        print(f"{title} {'waits for' if url in waiting else 'on'} {url}", flush=True)


def serve_alone(service: Service, program: str, title: str, busy_poll_us: int | None) -> int:
    """Run a service until a signal ends it, and return the exit status.

    `program` is one of `PROGRAMS`, under which the process has its status socket. `title` names the kind of
    service in the lines that announce its addresses. `busy_poll_us` is that of `serve`.
    """
    alone = Alone(service)

    def announce() -> None:
        say_addresses(title, service.urls, service.bindings)

    view = View(
        program=program,
        name=service.urls[0],
        besides=lambda: Besides(alone.hubs(), waiting_rows(alone.hub, service.bindings), (service,)),
        started_ns=time.time_ns(),
    )
    responder = status_responder(process_directory(program) / status_socket(()), view)
    return serve(
        WithResponders(alone, responder),
        announce,
        lambda: last_ledger(alone.hubs()),
        busy_poll_us=busy_poll_us,
    )
