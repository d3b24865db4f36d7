"""The last value cache as a service on its buses."""

import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Mapping

from bus.asking import Question, TimeAnswer, TimeQuestion, is_about_values, read, tell_time
from bus.lateness import late_ms
from bus.report import Report
from bus.values import LastValues
from devices.cache.answering import Answering
from devices.cache.device import CacheSpec
from devices.cache.subscribed import Subscribed
from devices.device import DeviceSpec
from devices.service import BusPort, Service

_FULL = "questions full"
_PAUSE_S = 0.01
"""The pause between two parts of an answer, in s: at most 6 MiB/s on each bus."""


def now_us() -> int:
    """Return the time, in microseconds since 1970."""
    return time.time_ns() // 1000


class _BusCache:
    """The last values of one bus, and the questions that were asked there."""

    def __init__(self, port: BusPort, values: LastValues, loop: AbstractEventLoop) -> None:
        self.values = values
        self.answering = Answering(values)
        self._port, self._loop = port, loop
        self._timer: TimerHandle | None = None

    def hear(self, messages: list[bytes]) -> None:
        """Keep the values of messages from the bus, and answer the questions among them."""
        self.values.take(messages, time.monotonic() - late_ms() / 1000)
        for message in messages:
            if is_about_values(message):
                question = read(message)
                if isinstance(question, Question):
                    self._ask(question)
                elif isinstance(question, TimeQuestion):
                    self._port.say([tell_time(TimeAnswer(question.nonce, now_us()))])

    def _ask(self, question: Question) -> None:
        if not self.answering.take(question):
            self._port.stats.reject(_FULL)
        elif self._timer is None:
            self._timer = self._loop.call_later(0, self._say)

    def _say(self) -> None:
        self._port.say(self.answering.part(time.monotonic()))
        self._timer = self._loop.call_later(_PAUSE_S, self._say) if self.answering.waits else None

    def close(self) -> None:
        """Stop answering. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Cache(Service):
    """A cache. Values of a bus go to peers that ask on that bus, values of DBP services to all that ask."""

    def __init__(self, name: str, spec: DeviceSpec) -> None:
        super().__init__(name, spec)
        assert isinstance(spec, CacheSpec)
        self._spec = spec
        self._buses: dict[BusPort, _BusCache] = {}
        self._kept: Mapping[str, LastValues] = {}
        self._subscribed = Subscribed(spec.services, self._publish) if spec.services else None

    @property
    def counts(self) -> Mapping[str, int]:
        found = Counter[str]()
        for cache in self._buses.values():
            values = cache.values
            found += Counter(values=len(values), values_bytes=values.bytes, forgotten=values.forgotten)
        told = {name: found[name] for name in ("values", "values_bytes", "forgotten")}
        return told | (dict(self._subscribed.counts) if self._subscribed else {})

    @property
    def rejected(self) -> Mapping[str, int]:
        refused = sum(port.stats.rejected.get(_FULL, 0) for port in self._buses)
        told = {_FULL: refused} if refused else {}
        return told | (dict(self._subscribed.rejected) if self._subscribed else {})

    def heard(self, port: BusPort, messages: list[bytes]) -> None:
        cache = self._buses.get(port)
        if cache is not None:
            cache.hear(messages)

    def start(self, loop: AbstractEventLoop) -> None:
        for bus, port in zip(self._spec.joins, self.ports, strict=True):
            values = self._kept.get(bus) or LastValues(self._spec.values, self._spec.values_bytes)
            self._buses[port] = _BusCache(port, values, loop)
        if self._subscribed is not None:
            self._subscribed.open(loop)

    def _publish(self, frames: list[bytes]) -> None:
        for cache in self._buses.values():
            cache.values.take(frames, time.monotonic())

    def follow(self, other: Service) -> None:
        """Take over the values of the buses that stay, within the new bounds."""
        if isinstance(other, Cache):
            self._kept = {bus: self._within(values) for bus, values in other.known().items()}

    def _within(self, old: LastValues) -> LastValues:
        made = LastValues(self._spec.values, self._spec.values_bytes)
        for value in old.read():
            made.take([value.frame], value.at_s)
        return made

    def known(self) -> dict[str, LastValues]:
        """Return the last values by the names of their buses."""
        caches = self._buses.values()
        return {bus: cache.values for bus, cache in zip(self._spec.joins, caches, strict=False)}

    def report(self) -> Report:
        return super().report()._replace(values={bus: one.read() for bus, one in self.known().items()})

    def stop(self) -> None:
        for cache in self._buses.values():
            cache.close()
        if self._subscribed is not None:
            self._subscribed.close()
