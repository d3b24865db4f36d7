"""The last value cache on its buses."""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Mapping

from bus.asking import Question, is_about_values, read
from bus.report import Report
from bus.values import LastValues
from devices.cache.answering import Answering
from devices.cache.device import CacheSpec
from devices.cache.subscribed import Subscribed
from devices.device import DeviceSpec
from devices.service import Seat, Service

_FULL = "questions full"
_PAUSE_S = 0.01
"""Between two parts of an answer: 6 MiB/s at most on each bus."""


class _Place:
    """The values of one bus, and the questions asked there."""

    def __init__(self, seat: Seat, values: LastValues, loop: AbstractEventLoop) -> None:
        self.values = values
        self.answering = Answering(values)
        self._seat, self._loop = seat, loop
        self._timer: TimerHandle | None = None

    def hear(self, messages: list[bytes]) -> None:
        now_s = time.monotonic()
        self.values.take(messages, now_s)
        for message in messages:
            if is_about_values(message):
                question = read(message)
                if isinstance(question, Question):
                    self._ask(question)

    def _ask(self, question: Question) -> None:
        if not self.answering.take(question):
            self._seat.stats.reject(_FULL)
        elif self._timer is None:
            self._timer = self._loop.call_later(0, self._say)

    def _say(self) -> None:
        self._seat.say(self.answering.part(time.monotonic()))
        self._timer = self._loop.call_later(_PAUSE_S, self._say) if self.answering.waits else None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Cache(Service):
    """A cache. What a bus brings is given to who asks on that bus; what services publish, to all who ask."""

    def __init__(self, name: str, spec: DeviceSpec) -> None:
        super().__init__(name, spec)
        assert isinstance(spec, CacheSpec)
        self._spec = spec
        self._places: dict[Seat, _Place] = {}
        self._kept: Mapping[str, LastValues] = {}
        self._subscribed = Subscribed(spec.services, self._publish) if spec.services else None

    @property
    def counts(self) -> Mapping[str, int]:
        found = Counter[str]()
        for place in self._places.values():
            values = place.values
            found += Counter(values=len(values), values_bytes=values.bytes, forgotten=values.forgotten)
        told = {name: found[name] for name in ("values", "values_bytes", "forgotten")}
        return told | (dict(self._subscribed.counts) if self._subscribed else {})

    @property
    def rejected(self) -> Mapping[str, int]:
        refused = sum(seat.stats.rejected.get(_FULL, 0) for seat in self._places)
        told = {_FULL: refused} if refused else {}
        return told | (dict(self._subscribed.rejected) if self._subscribed else {})

    def heard(self, seat: Seat, messages: list[bytes]) -> None:
        place = self._places.get(seat)
        if place is not None:
            place.hear(messages)

    def start(self, loop: AbstractEventLoop) -> None:
        for bus, seat in zip(self._spec.joins, self.seats, strict=True):
            values = self._kept.get(bus) or LastValues(self._spec.values, self._spec.values_bytes)
            self._places[seat] = _Place(seat, values, loop)
        if self._subscribed is not None:
            self._subscribed.open(loop)

    def _publish(self, frames: list[bytes]) -> None:
        for place in self._places.values():
            place.values.take(frames, time.monotonic())

    def follow(self, other: Service) -> None:
        """Keep what is known of the buses that stay, within the new bounds."""
        if isinstance(other, Cache):
            self._kept = {bus: self._within(values) for bus, values in other.known().items()}

    def _within(self, old: LastValues) -> LastValues:
        made = LastValues(self._spec.values, self._spec.values_bytes)
        for value in old.read():
            made.take([value.frame], value.at_s)
        return made

    def known(self) -> dict[str, LastValues]:
        """Return the values by the names of their buses."""
        places = self._places.values()
        return {bus: place.values for bus, place in zip(self._spec.joins, places, strict=False)}

    def report(self) -> Report:
        return super().report()._replace(values={bus: one.read() for bus, one in self.known().items()})

    def stop(self) -> None:
        for place in self._places.values():
            place.close()
        if self._subscribed is not None:
            self._subscribed.close()
