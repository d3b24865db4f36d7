"""Plots as SVG text, without a library: lines over time, bars, spans of time, and a graph of bridges."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from bus.text import markup

COLORS: Final = ("#2563a8", "#c2571a", "#2e8b57", "#8e44ad", "#b8860b", "#5f6b7a", "#c0396b", "#1a8f9c")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 230, 64, 24, 14, 34
_ROW: Final = 38  # the name, and below it the bar
_BAR: Final = 16
_LINE: Final = 17
_LEVELS: Final = 78  # of a series with others above and below: its name, and the plot
_VALUE: Final = 90  # room for a value beside a bar
_NAME_MOST: Final = 120  # characters that fit into a line
_SEGMENT_MOST: Final = 42  # into a segment's box
_GRAPH_MOST: Final = 62  # into a bridge's
_ROUNDED: Final = 0.9995  # of 1, is written as 1 with three digits
RED: Final = "#c2271a"
_RED_TEXT: Final = f' fill="{RED}" font-weight="600"'

_SEGMENT: Final = 300  # width of the boxes at the left of a graph
_BRIDGE: Final = 440
_HEAD: Final = 24

Points = Sequence[tuple[float, float]]


class Joint(NamedTuple):
    """A line of a graph: from a bridge to `segment`, with `words` about it; only words if that is "". A `bad`
    one is red."""

    segment: str
    words: str
    bad: bool


class Level(NamedTuple):
    """A signal in a window of time: its mean, least and greatest value at a second, of `rows` values."""

    second: float
    mean: float
    low: float
    high: float
    rows: int = 1


class TimeMark(NamedTuple):
    """A time to mark, from `start` to `end` in seconds, with a word about it."""

    start: float
    end: float
    color: str
    word: str


def lines(series: Mapping[str, Points], unit: str) -> str:
    """Draw named series over seconds. There are at most as many as colors; the rest is left to the table."""
    shown = [(name, line, color) for (name, line), color in zip(series.items(), COLORS, strict=False)]
    points = [point for _, line, _ in shown for point in line]
    if not points:
        return ""
    right = max(x for x, _ in points) or 1.0
    top = ceiling(max(y for _, y in points))
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    body = _grid(top, right, width, height, unit)
    for number, (name, line, color) in enumerate(shown):
        at = [(_LEFT + x / right * width, _TOP + height - y / top * height) for x, y in line]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        body.append(f'<polyline points="{drawn}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        if len(at) == 1:
            body.append(f'<circle cx="{at[0][0]:.1f}" cy="{at[0][1]:.1f}" r="3" fill="{color}"/>')
        body.append(_box(_LEFT, _HEIGHT + _LINE * number - 4, 11, 11, color))
        body.append(_name(name, _LEFT + 16, _HEIGHT + _LINE * number + 6))
    return _svg(_WIDTH, _HEIGHT + _LINE * len(shown), body)


def _grid(top: float, right: float, width: float, height: float, unit: str) -> list[str]:
    parts = [_text(_LEFT + 6, _TOP + 11, unit, more=' opacity="0.7"')]
    for step in range(5):
        y = _TOP + height - step / 4 * height
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(_text(_LEFT - 6, y + 4, short(top * step / 4), "end"))
    return parts + _seconds(_LEFT, width, _TOP + height + 17, right)


def levels(
    series: Mapping[str, Sequence[Level]],
    marks: Sequence[TimeMark],
    length: float,
    ends: tuple[str, str],
    pause: float,
) -> str:
    """Draw named series one below the other, each in its own range, over one axis of `length` seconds.

    `ends` label the axis. Marks go through all series. A series is broken where it has no level for `pause`,
    and, if a level is rarely of several values, for twice as long as is usual in it.
    """
    if not series:
        return ""
    width = _WIDTH - _LEFT - _RIGHT
    height = len(series) * _LEVELS
    body = [_marked(mark, length, width, height) for mark in marks]
    for number, (name, some) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        body += _levels(name, some, number * _LEVELS, (length, width, pause), color)
    y = height + _LINE
    body += [_text(_LEFT, y, ends[0]), _text(_LEFT + width, y, ends[1], "end")]
    return _svg(_WIDTH, y + 8, body)


def _levels(
    name: str, some: Sequence[Level], top: float, axis: tuple[float, float, float], color: str
) -> Iterator[str]:
    length, width, pause = axis
    low, high = min(one.low for one in some), max(one.high for one in some)
    floor, tall = top + _LEVELS - 12, _LEVELS - 12 - _LINE
    span = high - low or 1.0

    def place(second: float, value: float) -> str:
        return f"{_LEFT + second / length * width:.1f},{floor - (value - low) / span * tall:.1f}"

    yield _name(name, _LEFT, top + 12)
    yield _text(_LEFT - 6, floor, short(low), "end")
    if high > low:
        yield _text(_LEFT - 6, floor - tall + 8, short(high), "end")
    for run in _unbroken(some, max(pause, 2 * _usual(some))):
        if len(run) == 1:
            x, y = place(run[0].second, run[0].mean).split(",")
            yield f'<circle cx="{x}" cy="{y}" r="2" fill="{color}"/>'
        there = [place(one.second, one.high) for one in run]
        back = [place(one.second, one.low) for one in reversed(run)]
        yield f'<polygon points="{" ".join([*there, *back])}" fill="{color}" opacity="0.25"/>'
        drawn = " ".join(place(one.second, one.mean) for one in run)
        yield f'<polyline points="{drawn}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def _usual(some: Sequence[Level]) -> float:
    """Return the usual time between two levels: the median; 0 if levels are of several values, for then it
    is shorter than a level, however few there are."""
    if len(some) < 2 or median(one.rows for one in some) > 1:
        return 0.0
    return median(b.second - a.second for a, b in pairwise(some))


def _unbroken(some: Sequence[Level], pause: float) -> Iterator[list[Level]]:
    run = list[Level]()
    for one in some:
        if run and one.second - run[-1].second > pause:
            yield run
            run = []
        run.append(one)
    yield run


def _marked(mark: TimeMark, length: float, width: float, height: float) -> str:
    first, last = (min(max(at / length, 0.0), 1.0) * width for at in (mark.start, mark.end))
    box = _box(_LEFT + first, 0, max(1.5, last - first), height, mark.color, mark.word)
    return f'<g opacity="0.3">{box}</g>'


def bars(values: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], unit: str) -> str:
    """Draw one bar a name, of parts side by side from the left (of percentiles: the differences)."""
    if not values:
        return ""
    most = ceiling(max(sum(numbers) for _, numbers in values))
    body = []
    for row, (name, numbers) in enumerate(values):
        y, x = row * _ROW, 0.0
        body.append(_name(name, 0, y + 14))
        for value, color in zip(numbers, COLORS, strict=False):
            wide = value / most * (_WIDTH - _VALUE)
            body.append(_box(x, y + 19, wide, _BAR, color))
            x += wide
        body.append(_text(x + 6, y + 32, f"{short(sum(numbers))} {unit}"))
    height = len(values) * _ROW + 8
    if len(parts) > 1:
        body += _legend(parts, height + 14)
        height += 24
    return _svg(_WIDTH, height, body)


def _legend(names: Sequence[str], y: int) -> Iterator[str]:
    for number, (name, color) in enumerate(zip(names, COLORS, strict=False)):
        x = number * 130
        yield _box(x, y - 10, 11, 11, color) + _text(x + 16, y, name)


def graph(bridges: Mapping[str, Sequence[Joint]]) -> str:
    """Draw segments at the left, bridges at the right, and a line for each segment that a bridge joins."""
    if not bridges:
        return ""
    ends: dict[str, list[tuple[float, bool]]] = {}
    body, y = list[str](), 4.0
    left = _WIDTH - _BRIDGE
    for title, joints in bridges.items():
        height = _HEAD + _LINE * len(joints) + 6
        body.append(_frame(left, y, _BRIDGE - 2, height, "#8886"))
        body.append(_name(title, left + 10, y + 16, _GRAPH_MOST))
        for number, joint in enumerate(joints):
            at = y + _HEAD + _LINE * number + 12
            words = f"{joint.segment}: {joint.words}" if joint.segment else joint.words
            body.append(_name(words, left + 18, at, _GRAPH_MOST, _RED_TEXT if joint.bad else ""))
            if joint.segment:
                ends.setdefault(joint.segment, []).append((at - 4, joint.bad))
        y += height + 10
    needed, drawn = _segments(ends, y)
    return _svg(_WIDTH, int(needed), drawn + body)


def _segments(ends: Mapping[str, Sequence[tuple[float, bool]]], height: float) -> tuple[float, list[str]]:
    """Draw segments in the order of their lines' ends, and the lines. Return the height that is needed."""
    order = sorted(ends, key=lambda segment: sum(y for y, _ in ends[segment]) / len(ends[segment]))
    step = max(_ROW, height / len(order))
    body = list[str]()
    for number, segment in enumerate(order):
        middle = step * (number + 0.5)
        for y, bad in ends[segment]:
            line = f'x1="{_SEGMENT}" y1="{middle:.1f}" x2="{_WIDTH - _BRIDGE}" y2="{y:.1f}"'
            body.append(
                f'<line {line} stroke="{RED if bad else COLORS[0]}" stroke-width="{2.5 if bad else 1.4}"/>'
            )
        body.append(_frame(2, middle - 14, _SEGMENT - 2, 28, COLORS[2]))
        body.append(_name(segment, 10, middle + 4, _SEGMENT_MOST))
    return step * len(order) + 4, body


def _frame(x: float, y: float, width: float, height: float, color: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="4" fill="none" stroke="{color}" stroke-width="1.5"/>'


def spans(
    rows: Mapping[str, Sequence[tuple[float, float, str]]],
    length: float,
    color: str = COLORS[1],
    under: str = "#2e8b5755",
) -> str:
    """Draw for each name its events (start, end, word) in seconds, over a bar of the color `under`. Short
    ones are widened to be seen."""
    if not rows:
        return ""
    width = _WIDTH - _RIGHT
    body = []
    for row, (name, events) in enumerate(rows.items()):
        y = row * _ROW
        body += [_name(name, 0, y + 14), _box(0, y + 21, width, _BAR - 4, under)]
        for start, end, word in events:
            x, wide = start / length * width, max(2.5, (end - start) / length * width)
            body.append(_box(x, y + 19, wide, _BAR, color, word))
    y = len(rows) * _ROW + 18
    return _svg(_WIDTH, y + 8, body + _seconds(0, width, y, length))


def _seconds(left: float, width: float, y: float, length: float) -> list[str]:
    """Label five places of an axis of seconds. The labels at its ends stay within the picture."""
    anchors = ("start", "middle", "middle", "middle", "end")
    return [
        _text(left + step / 4 * width, y, f"{short(length * step / 4)} s", anchor)
        for step, anchor in enumerate(anchors)
    ]


def _name(name: str, x: float, y: float, most: int = _NAME_MOST, more: str = "") -> str:
    """Write a name that may be long: what does not fit is left out in its middle, and in the tooltip."""
    half = most // 2
    shown = name if len(name) <= most else f"{name[: half - 1]}…{name[-half:]}"
    return f"<g><title>{markup(name)}</title>{_text(x, y, shown, 'start', more)}</g>"


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{markup(words)}</text>'


def _box(x: float, y: float, width: float, height: float, color: str, title: str = "") -> str:
    shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{color}">'
    return f"{shape}<title>{markup(title)}</title></rect>"


def _svg(width: int, height: int, body: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img">{"".join(body)}</svg>'


def ceiling(value: float) -> float:
    """Round up to 1, 2, 2.5, 5 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)


def short(value: float) -> str:
    """Shorten a number: 1234567 is 1.23M. It has nine characters at most, which is what an axis has room
    for."""
    size = abs(value) / _ROUNDED
    if size and not 1e-4 <= size < 1e12:
        return f"{value:.2g}"
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"
