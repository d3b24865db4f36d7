"""The base of services: devices that are peers of their buses. A service is a link on the hub of each bus.

A device on two buses must not join them, so it has no hub of its own. Counts, loops and draining work as for
every other peer.
"""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from bus.hub import Hub, Pipe, State
from bus.ledger import Stats
from bus.report import Report
from bus.transports.binding import Binding
from bus.wire.batch import Batch, from_payloads, payloads
from devices.device import DeviceSpec

log = logging.getLogger("buscoupler")

QUEUE_BYTES = 1 << 20


class BusPort(Pipe):
    """The connection of a service to one bus: its pipe on the hub. `say` sends to all peers of the bus."""

    is_leaf = True

    def __init__(self, service: "Service", hub: Hub, loop: AbstractEventLoop) -> None:
        self.name = self.link = service.name
        self.stats = Stats()
        self._service, self._hub, self._loop = service, hub, loop
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def send(self, batch: Batch) -> None:
        """Hand messages of the bus to the service. An exception of the service is logged and counted."""
        self.stats.offered += batch.count
        try:
            self._service.heard(self, payloads(batch))
        except Exception as error:  # a defect of a service must not end the peers of its bus
            log.exception("%s: a message was not served", self.name)
            self._service.fault = f"{type(error).__name__}: {error}"
            return self.stats.drop("failed", batch.count)
        self.stats.sent += batch.count
        self.stats.sent_bytes += len(batch.data)
        return None

    def say(self, messages: Collection[bytes]) -> None:
        """Send messages to the bus in the loop's next turn, so that an answer overtakes nothing.

        Messages beyond the service's `queue_bytes` are dropped and counted.
        """
        for message in messages:
            if self._waiting_bytes + len(message) > self._service.queue_bytes:
                self.stats.reject("queue full")
                continue
            if not self._waiting:
                self._loop.call_soon(self._publish)
            self._waiting.append(message)
            self._waiting_bytes += len(message)

    def _publish(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._hub.publish(from_payloads(waiting), self)

    def close(self) -> None:
        """Leave the bus. Messages that wait are dropped and counted."""
        self.stats.reject("closed", len(self._waiting))
        self._waiting, self._waiting_bytes = [], 0
        self._hub.detach(self)


class Service:
    """The base class of services. A subclass writes `heard`.

    A service is made with its name and its record, and opened on each of its buses, which gives it a port in
    `ports`. `top` shows `state`, `condition` and `fault`; their changes are events.
    """

    queue_bytes = QUEUE_BYTES

    def __init__(self, name: str, spec: DeviceSpec) -> None:
        self.name = self.url = name
        self.spec = spec
        self.state: State = "closed"
        self.condition = self.fault = ""
        self.losses = 0
        self.ports: tuple[BusPort, ...] = ()

    @property
    def ledgers(self) -> Mapping[str, Stats]:
        """The ledgers of traffic outside the buses, by a word for the peers, such as `clients`."""
        return {}

    @property
    def urls(self) -> Sequence[str]:
        """The URLs at which the service listens for clients of its own, with the bound ports."""
        return ()

    @property
    def bindings(self) -> Sequence[Binding[Any]]:
        """The addresses at which the service listens, or waits to: a status shows those that wait."""
        return ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for a status page, by their keys."""
        return {}

    @property
    def rejected(self) -> Mapping[str, int]:
        """The counts of refused messages of its clients, by reason."""
        return {}

    def report(self) -> Report:
        """Return what a status shows of the service. One that has lists or values adds them (`_replace`)."""
        return Report(self.name, self.spec.key, self.urls, self.counts, self.rejected)

    def adapts(self, spec: DeviceSpec) -> bool:
        """Return whether the service can change to other settings while it runs, by `leave` and `adapt`.

        If it cannot, another service replaces it. Raises `LinkError` for wrong settings.
        """
        return False

    def leave(self, spec: DeviceSpec) -> None:
        """End the parts that are missing from new settings, which the service `adapts` to."""

    def adapt(self, spec: DeviceSpec, loop: AbstractEventLoop) -> None:
        """Begin the parts that are new in these settings. Raises `LinkError`; the other parts go on."""

    @property
    def paths(self) -> Sequence[Path]:
        """The files that the service opens when it starts: a file system that hangs is found before."""
        return ()

    def heard(self, port: BusPort, messages: list[bytes]) -> None:
        """Take messages from the bus of `port`. Return at once, and never raise because of a message."""

    def start(self, loop: AbstractEventLoop) -> None:
        """Begin timers and listeners, once all ports are open. Raises `LinkError` if that can never work."""

    def stop(self) -> None:
        """End what `start` began. Idempotent."""

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Join the bus of a hub by a new port."""
        port = BusPort(self, hub, loop)
        hub.attach(port)
        self.ports += (port,)
        self.state = "up"

    def revise(self, other: object) -> bool:
        """Return False: with other settings, another service replaces this one."""
        return False

    def follow(self, other: "Service") -> None:
        """Take over the knowledge of a service with other settings, which closes next. `start` comes later.

        A file that both use is handed over as it is, open or half read: what lies in it is older.
        """

    def close(self) -> None:
        """Stop, and leave all buses. Idempotent."""
        self.stop()
        for port in self.ports:
            port.close()
        self.ports, self.state = (), "closed"
