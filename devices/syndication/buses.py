"""The buses of a syndication broker: their frames become publications, and publications become frames."""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bus.reasons import kind_of
from bus.serving.rejections import Rejections
from devices.service import Seat
from devices.syndication.client import Client
from devices.syndication.device import SyndicationSpec
from devices.syndication.exchange import Exchange
from devices.syndication.intake import Heard, Intake
from devices.syndication.outlet import Outlet

log = logging.getLogger("buscoupler.syndication")

_TICK_S = 1.0


class _Place:
    """What the rules do on one bus. Refusals are counted by its seat; those that are no policy are logged."""

    def __init__(self, name: str, seat: Seat, intake: Intake) -> None:
        self.seat, self.intake = seat, intake
        self._log = Rejections(name, seat.stats.rejected, log)

    def reject(self, reason: str, host: str) -> None:
        if kind_of(reason) == "policy":
            self.seat.stats.reject(reason)
        else:
            self._log(reason, host)


class Buses:
    """The rules of a broker on all of its buses. `fault` is why a query is not served; "" if none is."""

    def __init__(
        self,
        name: str,
        spec: SyndicationSpec,
        exchange: Exchange,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.fault = ""
        self._name, self._spec, self._exchange, self._clock = name, spec, exchange, clock
        self._outlets: list[Outlet] = []
        self._places: dict[Seat, _Place] = {}
        self._timer: TimerHandle | None = None

    def start(self, loop: AbstractEventLoop, seats: Mapping[str, Seat]) -> None:
        """Begin on the buses, with the seat on each by its name."""
        places = {bus: _Place(self._name, seat, self._intake(bus)) for bus, seat in seats.items()}
        self._places = {place.seat: place for place in places.values()}
        for rule in self._spec.queries:
            place = places[rule.bus]
            outlet = Outlet(rule, place.seat.say, place.reject)
            self._outlets.append(outlet)
            self._exchange.subscribe(outlet, rule.query)
            self.fault = self.fault or outlet.fault
        self._exchange.deliver()
        if self._spec.producers:
            self._tick(loop)

    def _intake(self, bus: str) -> Intake:
        names = [name for pattern in self._spec.patterns() for name in pattern]
        return Intake([rule for rule in self._spec.producers if rule.bus == bus], names, self._known)

    def _known(self, id: str) -> Mapping[str, Any]:
        producer = self._exchange.book.producers.find(id)
        return producer.metadata if producer else {}

    def heard(self, seat: Seat, messages: Sequence[bytes]) -> None:
        """Take what a bus brings."""
        place, now_s = self._places.get(seat), self._clock()
        if place is not None and place.intake.speakers:
            for message in messages:
                self._take(place, place.intake.heard(message, now_s))
            self._exchange.deliver()

    def _take(self, place: _Place, heard: Heard) -> None:
        speaker = heard.speaker
        if speaker is None or heard.publication is None:
            place.reject(heard.refused, speaker.host if speaker else "")
        elif not self._exchange.publish(speaker, heard.publication):
            place.intake.forget(heard)

    def _tick(self, loop: AbstractEventLoop) -> None:
        self._timer = loop.call_later(_TICK_S, self._tick, loop)
        for place in self._places.values():
            for speaker, ids in place.intake.expire(self._clock()):
                self._exchange.silence(speaker, ids)

    def stop(self) -> None:
        """End on the buses. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        clients: list[Client] = [*self._outlets]
        for place in self._places.values():
            clients += place.intake.speakers
        self._timer, self._outlets, self._places = None, [], {}
        for client in clients:
            self._exchange.leave(client)
