"""Plots as SVG text, without a library: lines over time, bars, and spans of time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

COLORS: Final = ("#2563a8", "#c2571a", "#2e8b57", "#8e44ad", "#b8860b", "#5f6b7a", "#c0396b", "#1a8f9c")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 230, 64, 150, 14, 34
_ROW: Final = 26
_NAME: Final = 250

Points = Sequence[tuple[float, float]]


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
        body.append(_text(_WIDTH - _RIGHT + 12, _TOP + 12 + 17 * number, name[:22], more=f' fill="{color}"'))
    return _svg(_WIDTH, _HEIGHT, body)


def _grid(top: float, right: float, width: float, height: float, unit: str) -> list[str]:
    parts = [_text(_LEFT + 6, _TOP + 11, unit, more=' opacity="0.7"')]
    for step in range(5):
        y = _TOP + height - step / 4 * height
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(_text(_LEFT - 6, y + 4, short(top * step / 4), "end"))
    return parts + _seconds(_LEFT, width, _TOP + height + 17, right)


def bars(values: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], unit: str) -> str:
    """Draw one bar a name, of parts side by side from the left (of percentiles: the differences)."""
    if not values:
        return ""
    most = ceiling(max(sum(numbers) for _, numbers in values))
    body = []
    for row, (name, numbers) in enumerate(values):
        y, x = row * _ROW + 4, float(_NAME)
        body.append(_name(name, y))
        for value, color in zip(numbers, COLORS, strict=False):
            wide = value / most * (_WIDTH - _NAME - 90)
            body.append(_box(x, y, wide, _ROW - 8, color))
            x += wide
        body.append(_text(x + 6, y + 14, f"{short(sum(numbers))} {unit}"))
    height = len(values) * _ROW + 8
    if len(parts) > 1:
        body += _legend(parts, height + 14)
        height += 24
    return _svg(_WIDTH, height, body)


def _legend(names: Sequence[str], y: int) -> Iterator[str]:
    for number, (name, color) in enumerate(zip(names, COLORS, strict=False)):
        x = _NAME + number * 130
        yield _box(x, y - 10, 11, 11, color) + _text(x + 16, y, name)


def spans(rows: Mapping[str, Sequence[tuple[float, float, str]]], length: float) -> str:
    """Draw for each name its events (start, end, word) in seconds. Short ones are widened to be seen."""
    if not rows:
        return ""
    width = _WIDTH - _NAME - 20
    body = []
    for row, (name, events) in enumerate(rows.items()):
        y = row * _ROW + 4
        body += [_name(name, y), _box(_NAME, y + 2, width, _ROW - 12, "#2e8b5755")]
        for start, end, word in events:
            x, wide = _NAME + start / length * width, max(2.5, (end - start) / length * width)
            body.append(_box(x, y, wide, _ROW - 8, COLORS[1], word))
    y = len(rows) * _ROW + 18
    return _svg(_WIDTH, y + 8, body + _seconds(_NAME, width, y, length))


def _seconds(left: float, width: float, y: float, length: float) -> list[str]:
    """Label five places of an axis of seconds."""
    steps = [step / 4 for step in range(5)]
    return [_text(left + s * width, y, f"{short(length * s)} s", "middle" if s < 1 else "end") for s in steps]


def _name(name: str, y: float) -> str:
    return _text(_NAME - 8, y + 14, name[:40], "end")


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, color: str, title: str = "") -> str:
    shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{color}">'
    return f"{shape}<title>{escape(title)}</title></rect>"


def _svg(width: int, height: int, body: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width} {height}" role="img">{"".join(body)}</svg>'


def ceiling(value: float) -> float:
    """Round up to 1, 2, 2.5, 5 or 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)


def short(value: float) -> str:
    """Shorten a number: 1234567 is 1.23M."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"
