"""A message that is sent: what is known of its signals, and when its frames leave. Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from bridges.items import CanFrame
from bridges.protocols.dbc.compiled import Compiled, Group, decode, encode, number_of, raw_for, walk
from bridges.protocols.dbc.layout import Message, Signal
from bridges.protocols.dbc.values import Refusal, raw_of
from bus.quantity.forms import Value

NO_SIGNAL, FILLED, MULTIPLEXER, FAILED = "no signal", "filled", "multiplexer", "fill failed"
INCOMPLETE = "incomplete"
_SHOWN: Final = 3


class Terms(NamedTuple):
    """The terms of a message. `cycle_s` is 0 unless it is repeated.

    It is repeated while each value that came is `age_s` old at most. `initial` has raw numbers, and `fills`
    functions that work out signals, such as `counters` and checksums. `pads`: unused bits are 1.
    """

    identifier: int
    initial: Mapping[str, int]
    fills: Mapping[str, Callable[[bytes, int, int, int], int]]
    counters: frozenset[str]
    cycle_s: float = 0.0
    age_s: float = inf
    pads: bool = False


class SignalOutlet:
    """One message that is sent. `due_s` is when it is repeated, infinite if never.

    A frame is made only if all signals in it are known: written from the bus, heard from the gateway that
    sent before, or given in the topology.
    """

    def __init__(self, compiled: Compiled, terms: Terms) -> None:
        self._compiled, self._terms = compiled, terms
        self._signals = {signal.name: signal for signal in compiled.message.signals}
        self._raws = dict(terms.initial)
        self._written_s = dict[str, float]()  # when each signal was written
        self._count = 0
        self._old: Sequence[str] = ()
        self.due_s = inf
        self.fault = ""

    @property
    def message(self) -> Message:
        """The message."""
        return self._compiled.message

    @property
    def name(self) -> str:
        """The name of the message."""
        return self._compiled.message.name

    def texts(self, name: str) -> Collection[str]:
        """Return the texts that stand for numbers of a signal."""
        return self._signals[name].choices.values()

    def write(self, values: Mapping[str, Value], now_s: float) -> None:
        """Take values for signals: all or none. Raises `Refusal` with a reason of drops."""
        raws = self._raws | {name: self._raw(name, value) for name, value in values.items()}
        for name in values:
            self._select(raws, self._signals[name], values)
        self._raws, self._old = raws, ()
        self._written_s |= dict.fromkeys(values, now_s)

    def _raw(self, name: str, value: Value) -> int:
        signal = self._signals.get(name)
        if signal is None:
            raise Refusal(NO_SIGNAL)
        if name in self._terms.fills:
            raise Refusal(FILLED)
        return raw_of(signal, value)

    def _select(self, raws: dict[str, int], signal: Signal, given: Mapping[str, Value]) -> None:
        """Give each selector above a signal a value with which it is in the frame, if one alone does."""
        while signal.ids is not None and signal.selector in self._signals:
            selector = self._signals[signal.selector]
            known = raws.get(selector.name)
            if known is None or number_of(selector, known) not in signal.ids:
                if len(signal.ids) != 1 or selector.name in given:
                    raise Refusal(MULTIPLEXER)
                raws[selector.name] = raw_for(selector, min(signal.ids))
            signal = selector

    def hear(self, data: bytes | bytearray) -> None:
        """Take over what another gateway has sent in our place."""
        found, _ = decode(self._compiled, data)
        for group, raws in found:
            for signal, raw in zip(group.signals, raws, strict=True):
                if raw is not None:
                    self._raws[signal.name] = raw
                if raw is not None and signal.name in self._terms.counters:
                    self._count = (raw & (1 << signal.bits) - 1) + 1

    def missing(self) -> list[str]:
        """Return the names of the signals without which no frame can be made."""
        found = list[str]()
        for one in walk(self._compiled, self._raws):
            names = [one] if isinstance(one, str) else [signal.name for signal in one.signals]
            found += (name for name in names if name not in self._raws and name not in self._terms.fills)
            if isinstance(one, str) and one in self._raws:
                found.append(one)
        return list(dict.fromkeys(found))

    def send(self, now_s: float) -> list[CanFrame]:
        """Return the frame after a value was written; none in a cycle, whose next frame has it.

        Raises `Refusal` if a signal is missing, or too old to be repeated, or if a fill fails.
        """
        cycle_s = self._terms.cycle_s
        if cycle_s:
            self._old = self._too_old(now_s)
        if self._old or self.missing():
            raise Refusal(INCOMPLETE)
        if cycle_s and self.due_s < inf:
            return []
        if cycle_s:
            self.due_s = now_s + cycle_s
        found = self._frames()
        if self.fault:
            raise Refusal(FAILED)
        return found

    def turn(self, now_s: float, may_act: bool) -> list[CanFrame]:
        """Return the frame of a cycle; none, and end the cycle, if a value is too old, another acts, or a
        multiplexer was turned to a page that is not known whole.
        """
        if now_s < self.due_s:
            return []
        self._old = self._too_old(now_s)
        if self._old or not may_act or self.missing():
            self.due_s = inf
            return []
        following_s = self.due_s + self._terms.cycle_s
        self.due_s = following_s if following_s > now_s else now_s + self._terms.cycle_s
        return self._frames()

    def _too_old(self, now_s: float) -> list[str]:
        """Return the signals of the frame that came and that nobody has written for too long."""
        oldest_s, written = now_s - self._terms.age_s, self._written_s
        there = (one for one in walk(self._compiled, self._raws) if isinstance(one, Group))
        names = (signal.name for group in there for signal in group.signals)
        return [name for name in names if written.get(name, inf) < oldest_s]

    def _frames(self) -> list[CanFrame]:
        groups = [one for one in walk(self._compiled, self._raws) if isinstance(one, Group)]
        try:
            data = self._filled(groups)
        except Exception as error:  # a function of another distribution may raise anything
            self.fault = f"{self.name}: a fill failed: {error!r:.80}"
            return []
        self._count, self.fault = self._count + 1, ""
        return [(self._terms.identifier, data, self._compiled.message.marks)]

    def _filled(self, groups: list[Group]) -> bytes:
        fills, raws = self._terms.fills, self._raws | dict.fromkeys(self._terms.fills, 0)
        there = {signal.name for group in groups for signal in group.signals}
        data = encode(self._compiled, groups, raws, self._terms.pads)
        for name, fill in sorted(fills.items(), key=lambda pair: pair[0] not in self._terms.counters):
            if name in there:
                bits = self._signals[name].bits
                raws[name] = int(fill(data, self._terms.identifier, self._count, bits)) & (1 << bits) - 1
                data = encode(self._compiled, groups, raws, self._terms.pads)
        return data

    @property
    def condition(self) -> str:
        """The reason why no frame leaves though values came; "" if there is none."""
        if self.fault:
            return self.fault
        if missing := self.missing() if self._written_s else []:
            return f"{self.name} waits for {_some(missing)}"
        return f"{self.name} rests: too old: {_some(self._old)}" if self._old else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + ("..." if names[_SHOWN:] else "")
