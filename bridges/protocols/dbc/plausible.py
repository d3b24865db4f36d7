"""Frames of the messages of a database with plausible signals, at their cycle times, for tests. Pure.

A number goes slowly up and down in the range that the database gives, or in the middle of what its bits hold;
one with texts steps through these; a counter counts; selectors select one after the other. Each signal has a
pace and a phase of its own, which its name gives.
"""

import heapq
from collections.abc import Iterable, Iterator
from math import isfinite, pi, sin
from typing import Final
from zlib import crc32

from bridges.items import CanFrame
from bridges.protocols.dbc.compiled import Compiled, compile_message, encode, raw_for, walk
from bridges.protocols.dbc.fills import seems_filled
from bridges.protocols.dbc.layout import Message, Signal
from bridges.protocols.dbc.values import Refusal, raw_of

CYCLE_MS: Final = 1000
"""The cycle of a message whose database gives none."""
_PERIODS_S: Final = (4.0, 60.0)
_STEP_S: Final = 3.0
_SPREAD: Final = 0.1  # of all that the bits hold, where the database gives no range


class Plausible:
    """A source of frames. Times are seconds from its start."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self.sent = 0
        self._states = [_State(compile_message(message)) for message in messages]
        self._due = [(state.phase_s, number) for number, state in enumerate(self._states)]
        heapq.heapify(self._due)

    @property
    def identifiers(self) -> frozenset[int]:
        """The identifiers of all frames, with their top bits."""
        return frozenset(state.message.identifier for state in self._states)

    @property
    def next_s(self) -> float:
        """The time of the next frame; inf if there are no messages."""
        return self._due[0][0] if self._due else float("inf")

    def due(self, now_s: float, most: int) -> list[CanFrame]:
        """Return the frames that are due, at most so many. A cycle that was missed is left out."""
        found = list[CanFrame]()
        while self.next_s <= now_s and len(found) < most:
            when_s, number = heapq.heappop(self._due)
            state = self._states[number]
            found.append(state.frame(when_s))
            missed = max(0, int((now_s - when_s) / state.cycle_s))
            heapq.heappush(self._due, (when_s + state.cycle_s * (1 + missed), number))
        self.sent += len(found)
        return found


class _State:
    """A message that is sent, and how often it was."""

    def __init__(self, compiled: Compiled) -> None:
        self.message, self._compiled, self._count = compiled.message, compiled, 0
        self.cycle_s = (self.message.cycle_ms or CYCLE_MS) / 1000
        self.phase_s = self.cycle_s * _share(self.message.name)

    def frame(self, now_s: float) -> CanFrame:
        """Return the next frame."""
        raws = {one.name: self._raw(one, now_s) for one in self.message.signals if not one.is_selector}
        for one in self.message.signals:
            if one.is_selector:
                raws[one.name] = raw_for(one, self._chosen(one))
        groups = [group for group in walk(self._compiled, raws) if not isinstance(group, str)]
        self._count += 1
        return self.message.identifier, encode(self._compiled, groups, raws), self.message.marks

    def _chosen(self, selector: Signal) -> int:
        """Return the number that a selector has now: those with signals, one after the other."""
        every = sorted(self._numbers(selector)) or [0]
        return every[self._count % len(every)]

    def _numbers(self, selector: Signal) -> Iterator[int]:
        for one in self.message.signals:
            if one.selector == selector.name:
                yield from one.ids or ()

    def _raw(self, signal: Signal, now_s: float) -> int:
        if seems_filled(signal):
            return self._count & (1 << signal.bits) - 1
        if signal.choices:
            every = sorted(signal.choices)
            return every[int(now_s / _STEP_S + _share(signal.name) * len(every)) % len(every)]
        low, high = _range(signal)
        period_s = _PERIODS_S[0] + (_PERIODS_S[1] - _PERIODS_S[0]) * _share(signal.name)
        wave = (1 + sin(2 * pi * (now_s / period_s + _share(signal.name[::-1])))) / 2
        try:
            return raw_of(signal, _stepped(signal, low + (high - low) * wave))
        except Refusal:  # a range that the bits do not hold
            return 0


def _share(name: str) -> float:
    """Return a number from 0 to 1 that a name has always."""
    return crc32(name.encode()) / (1 << 32)


def _range(signal: Signal) -> tuple[float, float]:
    """Return the least and the most value that is plausible."""
    low, high = signal.low, signal.high
    if low is not None and high is not None and low < high and isfinite(high - low):
        return low, high
    if signal.is_float:
        return -1.0, 1.0
    least = -(1 << signal.bits - 1) if signal.is_signed else 0
    middle, spread = least + (1 << signal.bits - 1), (1 << signal.bits) * _SPREAD / 2
    ends = [(raw * signal.scale + signal.offset) for raw in (int(middle - spread), int(middle + spread))]
    return min(ends), max(ends)


def _stepped(signal: Signal, value: float) -> float:
    """Return the nearest value that a raw number has."""
    if signal.is_float:
        return value
    return round((value - signal.offset) / signal.scale) * signal.scale + signal.offset
