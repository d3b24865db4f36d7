"""The base of services: devices that take part in buses as a peer. A service is a link on the hub of each."""

import logging
from asyncio import AbstractEventLoop
from collections.abc import Collection, Mapping, Sequence

from bus.hub import Hub, Pipe, State
from bus.ledger import Stats
from bus.report import Report
from bus.wire.batch import Batch, from_payloads, payloads
from devices.device import DeviceSpec

log = logging.getLogger("buscoupler")

QUEUE_BYTES = 1 << 20


class Seat(Pipe):
    """The place of a service on one bus: `say` sends to all peers there."""

    def __init__(self, service: "Service", hub: Hub, loop: AbstractEventLoop) -> None:
        self.name = self.link = service.name
        self.stats = Stats()
        self._service, self._hub, self._loop = service, hub, loop
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def send(self, batch: Batch) -> None:
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
        """Send messages after what goes on now: an answer overtakes nothing. What does not fit is counted."""
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
        self._waiting, self._waiting_bytes = [], 0
        self._hub.detach(self)


class Service:
    """Derive from it, and write `heard`. It is made with its name and its record, and opened on each bus.

    `state`, `condition` and `fault` are shown by `top`, and their changes are events.
    """

    queue_bytes = QUEUE_BYTES

    def __init__(self, name: str, spec: DeviceSpec) -> None:
        self.name = self.url = name
        self.spec = spec
        self.state: State = "closed"
        self.condition = self.fault = ""
        self.losses = 0
        self.seats: tuple[Seat, ...] = ()

    @property
    def ledgers(self) -> Mapping[str, Stats]:
        """The ledgers of what it says elsewhere than on its buses, by whom they are about."""
        return {}

    @property
    def urls(self) -> Sequence[str]:
        """The URLs where it listens for clients of its own, with the ports that were bound."""
        return ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Plain numbers for a status page, if it listens."""
        return {}

    @property
    def rejected(self) -> Mapping[str, int]:
        """The counts of what its clients said and it refused, by reason."""
        return {}

    def report(self) -> Report:
        """Return what a status shows of the service. One that has lists or values adds them (`_replace`)."""
        return Report(self.name, self.spec.key, self.urls, self.counts, self.rejected)

    def adapts(self, spec: DeviceSpec) -> bool:
        """Return whether it can go over to other settings while it runs: then `leave` and `adapt` follow.

        With settings that it does not adapt to, another service stands in. Raises `LinkError` for wrong ones.
        """
        return False

    def leave(self, spec: DeviceSpec) -> None:
        """End what settings that it adapts to do not have any more."""

    def adapt(self, spec: DeviceSpec, loop: AbstractEventLoop) -> None:
        """Begin what these settings have more. Raises `LinkError` if that cannot be; the rest goes on."""

    def heard(self, seat: Seat, messages: list[bytes]) -> None:
        """Take what a bus brings. Return at once, and never raise because of a message."""

    def start(self, loop: AbstractEventLoop) -> None:
        """Begin: timers, listeners. All seats are taken. Raises `LinkError` for what can never work."""

    def stop(self) -> None:
        """End what `start` began. Idempotent."""

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        seat = Seat(self, hub, loop)
        hub.attach(seat)
        self.seats += (seat,)
        self.state = "up"

    def revise(self, other: object) -> bool:
        """Return False: with other settings, another service stands in."""
        return False

    def follow(self, other: "Service") -> None:
        """Take over what another one knows, which had other settings and is closed. `start` comes later."""

    def close(self) -> None:
        self.stop()
        for seat in self.seats:
            seat.close()
        self.seats, self.state = (), "closed"
