"""The common part of all simulated media: fault rates, a seed, a log, and a path with faults for packets."""

import os
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import pairwise
from math import log
from random import Random
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from bridges.media.device import cancel

T = TypeVar("T")
R = TypeVar("R")

_LOG_EVENTS = 1 << 16
_HELD_S = 0.05  # a packet that waits to be overtaken is delivered after this in any case


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of a medium. Rates are probabilities per unit, 0 to 1.

    The unit is a byte on a serial line, a frame on CAN, a datagram for multicast, a segment for TCP, a
    transaction for I2C (but a byte for its `corruption`). Each unit is late by `delay_s`, and by up to
    `jitter_s` more. Only `reordering` changes the order. Raises `ValueError`.
    """

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    corruption: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not name.endswith("_s") and not 0 <= value <= 1:
                raise ValueError(f"{name} is a probability from 0 to 1, not {value}")
        if self.delay_s < 0 or self.jitter_s < 0:
            raise ValueError("delay_s and jitter_s must not be negative")


class Event(NamedTuple):
    """An event on a wire: its time in seconds, the end, a word for what happened, and the bytes concerned."""

    time_s: float
    end: str
    what: str
    data: bytes = b""


class Wire:
    """A simulated medium. `faults` can be changed at any time; the same seed gives the same run.

    `log` holds the last 65,536 events. Set `stuck` to block the medium; each one defines the effect. Raises
    `ValueError` for a fault that the medium does not have.
    """

    has: ClassVar[frozenset[str]] = frozenset(field.name for field in fields(Faults))

    def __init__(self, seed: int = 0, faults: Faults | None = None) -> None:
        self.random = Random(seed)
        self.retries = Random(seed + 1)  # for the links, so that their retries do not shift the wire's faults
        self.log: deque[Event] = deque(maxlen=_LOG_EVENTS)
        self.faults = faults or Faults()
        self._stuck = False

    @property
    def stuck(self) -> bool:
        return self._stuck

    @stuck.setter
    def stuck(self, stuck: bool) -> None:
        self._stuck = stuck
        self._on_stuck()

    def _on_stuck(self) -> None:
        """React to a new value of `stuck`: stop, or let waiting data go on."""

    @property
    def faults(self) -> Faults:
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        wrong = [name for name, value in asdict(faults).items() if value and name not in self.has]
        if wrong:
            raise ValueError(
                f"{type(self).__name__} cannot simulate {', '.join(wrong)}: use {', '.join(sorted(self.has))}"
            )
        self._faults = faults

    def note(self, loop: AbstractEventLoop, end: str, what: str, data: bytes = b"") -> None:
        """Append an event to the log."""
        self.log.append(Event(loop.time(), end, what, data))

    def chance(self, rate: float) -> bool:
        """Return whether a fault of this rate happens now. A rate of 0 draws no random number."""
        return rate > 0 and self.random.random() < rate

    def delay_s(self) -> float:
        """Return how late the next unit is, in seconds."""
        faults = self.faults
        return faults.delay_s + (self.random.uniform(0, faults.jitter_s) if faults.jitter_s else 0.0)


class WireEnd:
    """An end of a wire. The device there is `plugged` or not; set `clogged` to make it read or send nothing.

    Each medium defines the effect of `clogged`, and its own `unplug()`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.plugged = True
        self._clogged = False

    @property
    def clogged(self) -> bool:
        return self._clogged

    @clogged.setter
    def clogged(self, clogged: bool) -> None:
        self._clogged = clogged
        self._on_clogged()

    def _on_clogged(self) -> None:
        """React to a new value of `clogged`: stop, or let waiting data go on."""
        raise NotImplementedError

    def plug(self) -> None:
        """Plug the device in again: it can be opened."""
        self.plugged = True


def strikes(random: Random, rate: float, size: int) -> Iterator[int]:
    """Yield the positions below `size` that a fault of this rate hits. The gaps between them are drawn."""
    if rate <= 0:
        return
    position = -1
    scale = log(1 - rate) if rate < 1 else 0.0
    while True:
        position += 1 + (int(log(1 - random.random()) / scale) if scale else 0)
        if position >= size:
            return
        yield position


def flip_bits(data: bytes, random: Random, rate: float) -> bytes:
    """Return `data` with one bit flipped in each byte that is hit."""
    bent = bytearray(data)
    for position in strikes(random, rate, len(data)):
        bent[position] ^= 1 << random.randrange(8)
    return bytes(bent)


def bend_bytes(data: bytes, random: Random, faults: Faults) -> bytes:
    """Return bytes as a noisy line delivers them: some corrupted, some missing, some twice."""
    data = flip_bits(data, random, faults.corruption)
    for rate, copies in ((faults.loss, 0), (faults.duplication, 2)):
        hits = list(strikes(random, rate, len(data)))
        if hits:
            edges = [-1, *hits, len(data)]
            parts = [data[a + 1 : b] + data[b : b + 1] * copies for a, b in pairwise(edges)]
            data = b"".join(parts)
    return data


class Order:
    """The order of delayed calls: they are made after their delays, always as they were given."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()

    def at(self, loop: AbstractEventLoop, delay_s: float, call: Callable[[], None]) -> None:
        """Make `call` in `delay_s` seconds, or later if an earlier one is still waiting."""
        if not self._waiting and delay_s <= 0:
            return call()
        at_s = max(loop.time() + delay_s, self._waiting[-1][0] if self._waiting else 0.0)
        self._waiting.append((at_s, call))
        if len(self._waiting) == 1:
            loop.call_at(at_s, self._go, loop)
        return None

    def _go(self, loop: AbstractEventLoop) -> None:
        now = self._waiting[0][0]  # one timer serves all items: timers of equal times fire in any order
        while self._waiting and self._waiting[0][0] <= now:
            self._waiting[0][1]()
            self._waiting.popleft()
        if self._waiting:
            loop.call_at(self._waiting[0][0], self._go, loop)


class Path(Generic[T]):
    """The path of packets to one receiver, on which they are lost, duplicated, corrupted, late or overtaken.

    `show` returns a packet's bytes for the log. Without `bend`, packets are never corrupted here.
    """

    def __init__(
        self,
        wire: Wire,
        end: str,
        deliver: Callable[[T], None],
        show: Callable[[T], bytes],
        bend: Callable[[T], T] | None = None,
    ) -> None:
        self._wire, self._end, self._deliver, self._show, self._bend = wire, end, deliver, show, bend
        self._order = Order()
        self._held: list[T] = []
        self._timer: TimerHandle | None = None

    def carry(self, loop: AbstractEventLoop, packet: T) -> None:
        """Send `packet` to the receiver; its faults are drawn now."""
        wire, faults = self._wire, self._wire.faults
        if wire.chance(faults.loss):
            return wire.note(loop, self._end, "lost", self._show(packet))
        copies = 2 if wire.chance(faults.duplication) else 1
        if copies == 2:
            wire.note(loop, self._end, "doubled", self._show(packet))
        if self._bend and wire.chance(faults.corruption):
            packet = self._bend(packet)
            wire.note(loop, self._end, "corrupted", self._show(packet))
        for _ in range(copies):
            self._order.at(loop, wire.delay_s(), partial(self._pass, loop, packet))
        return None

    def _pass(self, loop: AbstractEventLoop, packet: T) -> None:
        if not self._held and self._wire.chance(self._wire.faults.reordering):
            self._wire.note(loop, self._end, "overtaken", self._show(packet))
            self._held.append(packet)
            self._timer = loop.call_later(_HELD_S, self._let_go)
            return
        self._deliver(packet)
        self._let_go()

    def _let_go(self) -> None:
        cancel(self._timer)
        if self._held:
            self._deliver(self._held.pop())


def flip_one_bit(packet: bytes, random: Random) -> bytes:
    """Return `packet` with one bit flipped, at a random position."""
    bent = bytearray(packet)
    if bent:
        bent[random.randrange(len(bent))] ^= 1 << random.randrange(8)
    return bytes(bent)


def trouble(number: int, where: str = "") -> OSError:
    """Return the `OSError` of an errno, in the system's words. `where` goes before them."""
    return OSError(number, where + os.strerror(number))


def settings(wire: Wire, record: type[R], given: Mapping[str, Any], **fixed: Any) -> tuple[R, dict[str, Any]]:
    """Return the record of a link on `wire`, and its own arguments: retries are drawn from the seed."""
    mine, rest = divide(record, given)
    return record(**fixed | mine), {"jitter": wire.retries.uniform} | rest


def divide(record: type, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values in `given` that are fields of `record`, and the others, which are for its link."""
    names = {field.name for field in fields(record)}
    mine = {name: value for name, value in given.items() if name in names}
    return mine, {name: value for name, value in given.items() if name not in names}
