"""Rings of numbers by the second and by the minute. Pure: times are given, in nanoseconds since 1970."""

from array import array
from collections.abc import Iterable, Mapping
from heapq import nlargest
from math import isnan, nan
from typing import Final, Literal, NamedTuple

Fold = Literal["mean", "max", "last"]
"""A minute keeps this of its seconds."""


class Scale(NamedTuple):
    """One ring of each series: so many `points`, one in each `step_s`."""

    step_s: int
    points: int


SECONDS, MINUTES = Scale(1, 900), Scale(60, 1440)
SCALES: Final = {"15m": SECONDS, "24h": MINUTES}
SERIES: Final = 1600
"""The most series. Each takes 9.4 kB, so all of them 15 MB."""
NEW: Final = 64
"""The most series that begin with one sample: all at once would stand the loop."""
_SECOND_NS: Final = 1_000_000_000
_BACK_S: Final = 2
_NOTHING: Final = array("f", [nan]) * MINUTES.points


class Kind(NamedTuple):
    """A kind of series: its name, its unit, what a minute keeps, and what it is."""

    name: str
    unit: str
    fold: Fold
    doc: str


class Key(NamedTuple):
    """The identity of a series: the name of its kind, and its own."""

    kind: str
    name: str


class _Series:
    """One series. A place without a value has NaN."""

    __slots__ = ("count", "minutes", "seconds", "seen", "sum", "value")

    def __init__(self) -> None:
        self.seconds = array("f", [nan]) * SECONDS.points
        self.minutes = array("f", [nan]) * MINUTES.points
        self.seen = self.count = 0
        self.sum = 0.0
        self.value = nan

    def take(self, value: float, fold: Fold) -> None:
        """Add a value of the minute that is under way."""
        self.count += 1
        self.sum += value
        self.value = value if self.count == 1 or fold != "max" else max(self.value, value)

    def minute(self, fold: Fold) -> float:
        """Return the value of the minute that is over, and begin the next."""
        found = nan if not self.count else self.sum / self.count if fold == "mean" else self.value
        self.count, self.sum, self.value = 0, 0.0, nan
        return found


class Curve(NamedTuple):
    """A series of one span: its points, the oldest first, NaN where there is none."""

    name: str
    points: "array[float]"


class Rings:
    """All series. `left_out` counts those of the last sample for which there was no room."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self.left_out = 0
        self._series: dict[Key, _Series] = {}
        self._second = -1

    def sample(self, time_ns: int, values: Mapping[Key, float]) -> None:
        """Take the values of this second.

        If the last sample was two seconds ago, they stand for the second between too; of more, none has any.
        """
        second = time_ns // _SECOND_NS
        if second < self._second - _BACK_S:  # the clock was set back: what is kept would have false times
            self._series.clear()
            self._second = -1
        if second <= self._second:
            return
        first = self._second + 1 if self._second >= 0 else second
        self._advance(max(first, second - MINUTES.points * 60), second)
        for one in range(first, second + 1) if second - first == 1 else (second,):
            self._put(one, values)
        self._second = second

    def _advance(self, first: int, last: int) -> None:
        """Empty the places of some seconds, and of the minutes that end within them, but for the first."""
        begun, ended = -(first // -60) - 1, last // 60 - 1
        for key, series in list(self._series.items()):
            _empty(series.seconds, first, last)
            if begun <= ended:
                series.minutes[begun % MINUTES.points] = series.minute(self.kinds[key.kind].fold)
                _empty(series.minutes, begun + 1, ended)
            if last - series.seen > MINUTES.points * 60:
                del self._series[key]

    def _put(self, second: int, values: Mapping[Key, float]) -> None:
        self.left_out = 0
        most = min(SERIES, len(self._series) + NEW)
        place = second % SECONDS.points
        for key, value in values.items():
            series = self._series.get(key)
            if series is None:
                if len(self._series) >= most:
                    self.left_out += 1
                    continue
                series = self._series[key] = _Series()
            series.seen = second
            series.seconds[place] = value
            series.take(value, self.kinds[key.kind].fold)

    def curves(self, kind: str, scale: Scale, most: int) -> tuple[list[Curve], int]:
        """Return the series of a kind with the largest values, by name, and how many more there are.

        The last point is that of the last sample, or of the last whole minute.
        """
        step_s, points = scale
        last = self._end(step_s) % points
        found = [
            Curve(key.name, _turned(series.seconds if step_s == 1 else series.minutes, last))
            for key, series in self._series.items()
            if key.kind == kind
        ]
        shown = nlargest(most, found, key=lambda curve: _largest(curve.points))
        return sorted(shown), len(found) - len(shown)

    def end_ns(self, scale: Scale) -> int:
        """Return the time of the last point, since 1970; 0 before the first sample."""
        return max(0, self._end(scale.step_s)) * scale.step_s * _SECOND_NS

    def _end(self, step_s: int) -> int:
        return self._second if step_s == 1 else self._second // step_s - 1


def _empty(ring: "array[float]", first: int, last: int) -> None:
    """Empty the places of some numbers: thousands at once, where a clock leaps."""
    if first == last:
        ring[first % len(ring)] = nan
        return
    count = min(last - first + 1, len(ring))
    begin = (last - count + 1) % len(ring)
    head = min(count, len(ring) - begin)
    ring[begin : begin + head] = _NOTHING[:head]
    ring[: count - head] = _NOTHING[: count - head]


def _turned(ring: "array[float]", last: int) -> "array[float]":
    return ring[last + 1 :] + ring[: last + 1]


def _largest(points: "array[float]") -> float:
    return max((abs(point) for point in points if not isnan(point)), default=-1.0)
