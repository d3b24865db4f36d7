"""The signals of one message of one source, as they are published. Pure."""

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from bridges.protocols.dbc.compiled import Compiled, Found, Group, decode
from bridges.protocols.dbc.layout import Message, Signal
from bridges.protocols.dbc.values import Value, number, value
from bridges.protocols.dbc.writers import Writer, write_all, writer
from bus.quantity.forms import Form
from bus.wire.pattern import token

_UNITS_MAX: Final = 1024


class Manner(NamedTuple):
    """The manner in which signals are published. The record `Dbc` has the meaning of each.

    `every_s` is 0 for no bound, and `refresh_s` infinite unless only changes are published. `reject` counts
    what is no value, by reason.
    """

    form: Form
    is_per_message: bool
    only_changes: bool
    refresh_s: float
    every_s: float
    unix_s: Callable[[float], float]
    reject: Callable[[str], None]


class _Unit:
    """Signals that are published together: a group, or for a frame per message all groups that are there."""

    __slots__ = ("absent", "last", "last_s", "next_s", "pending", "signals", "writers")

    def __init__(self, signals: tuple[Signal, ...], writers: tuple[Writer, ...], message: Message) -> None:
        self.signals, self.writers = signals, writers
        self.absent = [message.absent(signal) for signal in signals] if message.is_j1939 else None
        self.last: Sequence[int | None] = (None,) * len(signals)
        self.last_s = -inf
        self.next_s = -inf
        self.pending: tuple[Sequence[int | None], float] | None = None


class Station:
    """The signals of one message of one source. `due_s` is when `turn` has something to publish."""

    def __init__(self, compiled: Compiled, tokens: tuple[int, ...], manner: Manner) -> None:
        self._compiled, self._tokens, self._manner = compiled, tokens, manner
        self._units = dict[object, _Unit]()
        self._size = compiled.message.size
        first = compiled.groups[0]
        self._first = first
        is_direct = not (manner.is_per_message or manner.only_changes or manner.every_s)
        self._is_direct = is_direct and compiled.is_simple and not compiled.message.is_j1939
        self._writers = self._writers_of(first.signals) if self._is_direct else ()
        self._values = first.numbers if manner.form == "number" else first.values
        self.due_s = inf

    def _writers_of(self, signals: Sequence[Signal]) -> tuple[Writer, ...]:
        form, unix_s = self._manner.form, self._manner.unix_s
        return tuple(writer(form, (*self._tokens, token(one.name)), one.unit, unix_s) for one in signals)

    def receive(self, data: bytes | bytearray, now_s: float) -> list[bytes]:
        """Return the frames that the data of a CAN frame become."""
        if self._is_direct and len(data) >= self._size:
            values = self._values(data if len(data) == self._size else data[: self._size])
            return [write(value, now_s) for write, value in zip(self._writers, values, strict=True)]
        found, unknown = decode(self._compiled, data)
        for _ in range(unknown):
            self._manner.reject("multiplexer")
        if len(data) < self._size:
            self._manner.reject("short")
        return self._taken(found, now_s)

    def _taken(self, found: Found, now_s: float) -> list[bytes]:
        if self._manner.is_per_message:
            key = tuple(group.index for group, _ in found)
            return self._offer(self._unit(key, [group for group, _ in found]), _flat(found), now_s)
        offers = (self._offer(self._unit(group.index, (group,)), raws, now_s) for group, raws in found)
        return list(chain.from_iterable(offers))

    def _unit(self, key: object, groups: Sequence[Group]) -> _Unit:
        found = self._units.get(key)
        if found is None:
            if len(self._units) >= _UNITS_MAX:
                self._units.clear()
            signals = tuple(chain.from_iterable(group.signals for group in groups))
            writers = () if self._manner.is_per_message else self._writers_of(signals)
            found = self._units[key] = _Unit(signals, writers, self._compiled.message)
        return found

    def _offer(self, unit: _Unit, raws: Sequence[int | None], now_s: float) -> list[bytes]:
        """Publish now, or keep what is the latest until the unit may be published again."""
        every_s = self._manner.every_s
        if now_s < unit.next_s:
            unit.pending = raws, now_s
            self.due_s = min(self.due_s, unit.next_s)
            return []
        if every_s:
            unit.next_s, unit.pending = now_s + every_s, None
        return self._publish(unit, raws, now_s)

    def turn(self, now_s: float) -> list[bytes]:
        """Return the frames that had to wait until now."""
        found = list[bytes]()
        for unit in self._units.values():
            if unit.pending is not None and unit.next_s <= now_s:
                raws, heard_s = unit.pending
                unit.next_s, unit.pending = now_s + self._manner.every_s, None
                found += self._publish(unit, raws, heard_s)
        waiting = (unit.next_s for unit in self._units.values() if unit.pending is not None)
        self.due_s = min(waiting, default=inf)
        return found

    def _publish(self, unit: _Unit, raws: Sequence[int | None], now_s: float) -> list[bytes]:
        fresh = self._changed(unit, raws, now_s) if self._manner.only_changes else raws
        if fresh is None:
            return []
        values = [self._value(unit, place, raw) for place, raw in enumerate(fresh)]
        if not self._manner.is_per_message:
            known = zip(unit.writers, values, strict=True)
            return [write(value, now_s) for write, value in known if value is not None]
        names = [signal.name for signal in unit.signals]
        if all(value is None for value in values):
            return []
        made = write_all(self._tokens, names, values, self._manner.unix_s(now_s))
        if made is None:
            self._manner.reject("oversize")
        return [] if made is None else [made]

    def _changed(self, unit: _Unit, raws: Sequence[int | None], now_s: float) -> Sequence[int | None] | None:
        """Return the raw numbers to publish, with None for others; None if all are as before."""
        last, refresh = unit.last, now_s - unit.last_s >= self._manner.refresh_s
        if not refresh and raws == last:
            return None
        unit.last = [old if raw is None else raw for raw, old in zip(raws, last, strict=True)]
        if refresh:
            unit.last_s = now_s
        if refresh or self._manner.is_per_message:
            return raws
        pairs = zip(raws, last, unit.signals, strict=True)
        return [None if raw == old or signal.is_selector else raw for raw, old, signal in pairs]

    def _value(self, unit: _Unit, place: int, raw: int | None) -> Value | None:
        if raw is None:
            return None
        signal = unit.signals[place]
        if unit.absent is not None:
            error, absent, end = unit.absent[place]
            plain = raw & (1 << signal.bits) - 1
            if error <= plain < end:
                self._manner.reject("not available" if plain >= absent else "error value")
                return None
        return number(signal, raw) if self._manner.form == "number" else value(signal, raw)


def _flat(found: Found) -> list[int | None]:
    return [raw for _, raws in found for raw in raws]
