"""The buses of a syndication broker: their frames become publications, and publications become frames."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bus.reasons import kind_of
from bus.serving.rejections import Rejections
from devices.service import Seat
from devices.syndication.buses.intake import Intake, Taken
from devices.syndication.buses.publisher import Outlet
from devices.syndication.client import Client
from devices.syndication.device import SyndicationSpec
from devices.syndication.exchange import Exchange
from devices.syndication.turns import Turns

log = logging.getLogger("buscoupler.syndication")

INBOX_BYTES = 1 << 20
TICK_S = 1.0
_TAKEN_BYTES = 160


class _Place:
    """The rules of one bus. What the bus brings waits until it is its turn, in a bounded queue.

    Refusals are counted by the seat; those that are no policy are logged.
    """

    def __init__(
        self,
        name: str,
        bus: str,
        seat: Seat,
        intake: Intake,
        exchange: Exchange,
        clock: Callable[[], float],
    ) -> None:
        self.seat, self.intake = seat, intake
        self._host, self._exchange, self._clock = f"bus {bus}", exchange, clock
        self._log = Rejections(name, seat.stats.rejected, log)
        self._inbox: deque[Taken] = deque()
        self._inbox_bytes = 0
        self.waits = False

    def hear(self, messages: Sequence[bytes]) -> None:
        """Keep what falls under a rule until `work`."""
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
        """Take what waits, in order. Return whether all is done; else `waits` is true until its next turn."""
        inbox, self.waits = self._inbox, False
        while inbox:
            taken = inbox.popleft()
            self._inbox_bytes -= _size(taken)
            self._say(taken)
            if time.monotonic() >= until_s:
                break
        self.waits = bool(inbox)
        return not inbox

    def _say(self, taken: Taken) -> None:
        said = self.intake.read(taken)
        if isinstance(said, str):
            return self.reject(said, taken.speaker.host)
        source, publication = said
        if self._exchange.publish(taken.speaker, publication):
            self.intake.accept(taken, source, self._clock())
        return None

    def reject(self, reason: str, host: str) -> None:
        if kind_of(reason) == "policy":
            self.seat.stats.reject(reason)
        else:
            self._log(reason, host)

    def close(self) -> None:
        """Drop what waits, and count it."""
        self.seat.stats.reject("closed", len(self._inbox))
        self._inbox.clear()


def _size(taken: Taken) -> int:
    """Return about the memory that a frame takes while it waits."""
    return len(taken.key) + len(taken.data) + _TAKEN_BYTES


class Buses:
    """The rules of a broker on all of its buses. `fault` is why a query is not served; "" if none is.

    `clock` says monotonic seconds. Each `tick_s` producers are looked for that were silent for too long.
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
        self._outlets: list[Outlet] = []
        self._places: dict[Seat, _Place] = {}
        self._timer: TimerHandle | None = None

    def start(self, loop: AbstractEventLoop, seats: Mapping[str, Seat]) -> None:
        """Begin on the buses, with the seat on each by its name."""
        places = {bus: self._place(bus, seat) for bus, seat in seats.items()}
        self._places = {place.seat: place for place in places.values()}
        for rule in self._spec.queries:
            outlet = Outlet(rule, seats[rule.bus].say, places[rule.bus].reject)
            self._outlets.append(outlet)
            self._exchange.subscribe(outlet, rule.query)
            self.fault = self.fault or outlet.fault
        self._exchange.deliver()
        self._turns.open(loop)
        if self._spec.producers:
            self._tick(loop)

    def _place(self, bus: str, seat: Seat) -> _Place:
        names = [name for pattern in self._spec.patterns() for name in pattern]
        rules = [rule for rule in self._spec.producers if rule.bus == bus]
        intake = Intake(rules, names, self._known)
        return _Place(self._name, bus, seat, intake, self._exchange, self._clock)

    def _known(self, id: str) -> Mapping[str, Any]:
        producer = self._exchange.book.producers.find(id)
        return producer.metadata if producer else {}

    def heard(self, seat: Seat, messages: Sequence[bytes]) -> None:
        """Take what a bus brings."""
        place = self._places.get(seat)
        if place is None or not place.intake.speakers:
            return
        place.hear(messages)
        if not place.waits:
            self._turns.give(place)

    def renew(self) -> None:
        """Note that metadata may have been remembered that no rule says: its next frame deletes them."""
        for place in self._places.values():
            place.intake.renew()

    def _tick(self, loop: AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._tick_s, self._tick, loop)
        for place in self._places.values():
            for speaker, ids in place.intake.expire(self._clock()):
                self._exchange.silence(speaker, ids)

    def stop(self) -> None:
        """End on the buses. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._turns.close()
        clients: list[Client] = [*self._outlets]
        for place in self._places.values():
            place.close()
            clients += place.intake.speakers
        self._timer, self._outlets, self._places = None, [], {}
        for client in clients:
            self._exchange.leave(client)
