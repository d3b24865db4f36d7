"""Plots as SVG text, without a library: lines over time, bars, and spans of time."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

COLORS: Final = ("#2563a8", "#c2571a", "#2e8b57", "#8e44ad", "#b8860b", "#5f6b7a", "#c0396b", "#1a8f9c")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 230, 64, 150, 14, 34
_ROW: Final = 26
_NAME: Final = 250

Points = Sequence[tuple[float, float]]


def lines(series: Mapping[str, Points], unit: str) -> str:
    """Draw named series over seconds. There are at most as many as colors; the rest is left to the table."""
    shown = dict(list(series.items())[: len(COLORS)])
    points = [point for line in shown.values() for point in line]
    if not points:
        return ""
    right = max(x for x, _ in points) or 1.0
    top = ceiling(max(y for _, y in points))
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def at(point: tuple[float, float]) -> str:
        return f"{_LEFT + point[0] / right * width:.1f},{_TOP + height - point[1] / top * height:.1f}"

    body = [_grid(top, right, width, height, unit)]
    for number, (name, line) in enumerate(shown.items()):
        color = COLORS[number]
        drawn = " ".join(map(at, line))
        body.append(f'<polyline points="{drawn}" fill="none" stroke="{color}" stroke-width="1.6"/>')
        if len(line) == 1:
            x, y = at(line[0]).split(",")
            body.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>')
        y_name = _TOP + 12 + 17 * number
        body.append(
            f'<text x="{_WIDTH - _RIGHT + 12}" y="{y_name}" fill="{color}">{escape(name[:22])}</text>'
        )
    return _svg(_WIDTH, _HEIGHT, body)


def _grid(top: float, right: float, width: float, height: float, unit: str) -> str:
    parts = []
    for step in range(5):
        y = _TOP + height - step / 4 * height
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(top * step / 4)}</text>'
        )
        x = _LEFT + step / 4 * width
        parts.append(
            f'<text x="{x:.1f}" y="{_TOP + height + 17}" text-anchor="middle">'
            f"{short(right * step / 4)} s</text>"
        )
    parts.append(f'<text x="{_LEFT + 6}" y="{_TOP + 11}" opacity="0.7">{escape(unit)}</text>')
    return "".join(parts)


def bars(values: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], unit: str) -> str:
    """Draw one bar a name, of parts side by side from the left (of percentiles: the differences)."""
    if not values:
        return ""
    most = ceiling(max(sum(numbers) for _, numbers in values))
    width = _WIDTH - _NAME - 90
    body = []
    for row, (name, numbers) in enumerate(values):
        y, x = row * _ROW + 4, float(_NAME)
        body.append(f'<text x="{_NAME - 8}" y="{y + 14}" text-anchor="end">{escape(name[:40])}</text>')
        for number, value in enumerate(numbers):
            wide = value / most * width
            color = COLORS[number % len(COLORS)]
            body.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{_ROW - 8}" fill="{color}"/>')
            x += wide
        body.append(f'<text x="{x + 6:.1f}" y="{y + 14}">{short(sum(numbers))} {escape(unit)}</text>')
    height = len(values) * _ROW + 8
    if len(parts) > 1:
        body.append(_legend(parts, height + 14))
        height += 24
    return _svg(_WIDTH, height, body)


def _legend(names: Sequence[str], y: int) -> str:
    placed = []
    for number, name in enumerate(names):
        x = _NAME + number * 130
        placed.append(
            f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{COLORS[number % len(COLORS)]}"/>'
        )
        placed.append(f'<text x="{x + 16}" y="{y}">{escape(name)}</text>')
    return "".join(placed)


def spans(rows: Mapping[str, Sequence[tuple[float, float, str]]], length: float) -> str:
    """Draw for each name its events (start, end, word) in seconds. Short ones are widened to be seen."""
    if not rows:
        return ""
    width = _WIDTH - _NAME - 20
    body = []
    for row, (name, events) in enumerate(rows.items()):
        y = row * _ROW + 4
        body.append(f'<text x="{_NAME - 8}" y="{y + 14}" text-anchor="end">{escape(name[:40])}</text>')
        body.append(f'<rect x="{_NAME}" y="{y + 2}" width="{width}" height="{_ROW - 12}" fill="#2e8b5755"/>')
        for start, end, word in events:
            x, wide = _NAME + start / length * width, max(2.5, (end - start) / length * width)
            box = f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{_ROW - 8}" fill="{COLORS[1]}">'
            body.append(f"{box}<title>{escape(word)}</title></rect>")
    y = len(rows) * _ROW + 18
    for step in range(5):
        x = _NAME + step / 4 * width
        anchor = "end" if step == 4 else "middle"
        body.append(f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{short(length * step / 4)} s</text>')
    return _svg(_WIDTH, y + 8, body)


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
