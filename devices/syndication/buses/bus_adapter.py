"""The bus adapters of a syndication broker: each joins one bus to the broker's exchange, by rules."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bus.reasons import kind_of
from bus.serving.rejections import Rejections
from devices.service import BusPort
from devices.syndication.buses.intake import Intake, Taken
from devices.syndication.buses.publisher import BusPublisher
from devices.syndication.client import Client
from devices.syndication.device import SyndicationSpec
from devices.syndication.exchange import Exchange
from devices.syndication.turns import Turns

log = logging.getLogger("buscoupler.syndication")

INBOX_BYTES = 1 << 20
TICK_S = 1.0
_TAKEN_BYTES = 160


class _BusAdapter:
    """The rules of one bus. Its frames wait for the adapter's turn, in a bounded queue.

    The port counts refusals; refusals that are faults of a peer are logged too.
    """

    def __init__(
        self,
        name: str,
        bus: str,
        port: BusPort,
        intake: Intake,
        exchange: Exchange,
        clock: Callable[[], float],
    ) -> None:
        self.port, self.intake = port, intake
        self._host, self._exchange, self._clock = f"bus {bus}", exchange, clock
        self._log = Rejections(name, port.stats.rejected, log)
        self._inbox: deque[Taken] = deque()
        self._inbox_bytes = 0
        self.waits = False

    def hear(self, messages: Sequence[bytes]) -> None:
        """Queue the messages that fall under a rule for `work`."""
        for message in messages:
            taken = self.intake.take(message)
            if isinstance(taken, str):
                self.reject(taken, self._host)
            elif self._inbox_bytes + _size(taken) > INBOX_BYTES:
                self.reject("queue full", taken.speaker.host)
            else:
                self._inbox.append(taken)
                self._inbox_bytes += _size(taken)

    def work(self, until_s: float) -> bool:
        """Publish queued frames until `until_s`. Return whether all are done; else `waits` is True."""
        inbox, self.waits = self._inbox, False
        while inbox:
            taken = inbox.popleft()
            self._inbox_bytes -= _size(taken)
            self._publish(taken)
            if time.monotonic() >= until_s:
                break
        self.waits = bool(inbox)
        return not inbox

    def _publish(self, taken: Taken) -> None:
        read = self.intake.read(taken)
        if isinstance(read, str):
            return self.reject(read, taken.speaker.host)
        source, publication = read
        if self._exchange.publish(taken.speaker, publication, True):
            self.intake.accept(taken, source, self._clock())
        return None

    def reject(self, reason: str, host: str) -> None:
        """Count a refusal, and log it if it is a fault of a peer."""
        if kind_of(reason) == "policy":
            self.port.stats.reject(reason)
        else:
            self._log(reason, host)

    def close(self) -> None:
        """Drop the queued frames, and count them."""
        self.port.stats.reject("closed", len(self._inbox))
        self._inbox.clear()


def _size(taken: Taken) -> int:
    """Return about the memory of a queued frame, in bytes."""
    return len(taken.key) + len(taken.data) + _TAKEN_BYTES


class Buses:
    """The rules of a broker on all of its buses. `fault` says why a query is not served, or "".

    `clock` returns monotonic seconds. Producers that were silent for too long are removed each `tick_s`.
    """

    def __init__(
        self,
        name: str,
        spec: SyndicationSpec,
        exchange: Exchange,
        clock: Callable[[], float] = time.monotonic,
        tick_s: float = TICK_S,
    ) -> None:
        self.fault = ""
        self._name, self._spec, self._exchange = name, spec, exchange
        self._clock, self._tick_s = clock, tick_s
        self._turns = Turns(exchange.deliver)
        self._publishers: list[BusPublisher] = []
        self._adapters: dict[BusPort, _BusAdapter] = {}
        self._timer: TimerHandle | None = None

    def start(self, loop: AbstractEventLoop, ports: Mapping[str, BusPort]) -> None:
        """Begin on all buses. `ports` has the broker's port on each bus by its name."""
        adapters = {bus: self._adapter(bus, port) for bus, port in ports.items()}
        self._adapters = {adapter.port: adapter for adapter in adapters.values()}
        for rule in self._spec.queries:
            publisher = BusPublisher(rule, ports[rule.bus].say, adapters[rule.bus].reject)
            self._publishers.append(publisher)
            self._exchange.subscribe(publisher, rule.query)
            self.fault = self.fault or publisher.fault
        self._exchange.deliver()
        self._turns.open(loop)
        if self._spec.producers:
            self._tick(loop)

    def _adapter(self, bus: str, port: BusPort) -> _BusAdapter:
        names = [name for pattern in self._spec.patterns() for name in pattern]
        rules = [rule for rule in self._spec.producers if rule.bus == bus]
        intake = Intake(rules, names, self._known)
        return _BusAdapter(self._name, bus, port, intake, self._exchange, self._clock)

    def _known(self, id: str) -> Mapping[str, Any]:
        producer = self._exchange.book.producers.find(id)
        return producer.metadata if producer else {}

    def heard(self, port: BusPort, messages: Sequence[bytes]) -> None:
        """Take messages from the bus of `port`."""
        adapter = self._adapters.get(port)
        if adapter is None or not adapter.intake.speakers:
            return
        adapter.hear(messages)
        if not adapter.waits:
            self._turns.give(adapter)

    def _tick(self, loop: AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._tick_s, self._tick, loop)
        for adapter in self._adapters.values():
            for speaker, ids in adapter.intake.expire(self._clock()):
                self._exchange.silence(speaker, ids)

    def stop(self) -> None:
        """End on all buses. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._turns.close()
        clients: list[Client] = [*self._publishers]
        for adapter in self._adapters.values():
            adapter.close()
            clients += adapter.intake.speakers
        self._timer, self._publishers, self._adapters = None, [], {}
        for client in clients:
            self._exchange.leave(client)
