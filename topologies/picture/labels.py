"""The places of the labels of lines: beside the line, clear of nodes, of all lines and of other labels. Pure.

The picture is divided into small cells, each of which costs what stands in it. A label takes the place near
its line that costs least.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

CELL: Final = 4
"""Pixels of a cell."""
TALL: Final = (46, 28)
FLAT: Final = (94, 14)
"""The sizes of a label in two lines, and in one."""
_LINE, _TEXT, _NODE, _OUT = 1, 2, 5, 10_000
_ALONG: Final = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
_WAYS: Final = ((0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
_STEPS: Final = 10_000
_GAPS: Final = 5, 14

Point = tuple[float, float]
Rect = tuple[float, float, float, float]
"""Left, top, width and height."""


class Label(NamedTuple):
    """The middle of a label, and the number of its lines."""

    x: float
    y: float
    lines: int


class Ground:
    """The things in a picture of some size: a bit for each cell, by rows, for each cost."""

    def __init__(self, width: float, height: float) -> None:
        self._width, self._height = width, height
        self._rows = {cost: [0] * (int(height // CELL) + 2) for cost in (_LINE, _TEXT, _NODE)}

    def fill(self, rect: Rect, cost: int = _NODE) -> None:
        """Note that something stands in a rectangle within the picture."""
        top, bottom, bits = _cells(rect)
        rows = self._rows[cost]
        for row in range(max(0, top), min(bottom + 1, len(rows))):
            rows[row] |= bits

    def draw(self, points: Iterable[Point]) -> None:
        """Note that a line goes through some points."""
        rows = self._rows[_LINE]
        for x, y in points:
            if x >= 0 and 0 <= y // CELL < len(rows):
                rows[int(y // CELL)] |= 1 << int(x // CELL)

    def cost(self, rect: Rect) -> int:
        """Return what a label in a rectangle would cover."""
        x, y, width, height = rect
        if x < 0 or y < 0 or x + width > self._width or y + height > self._height:
            return _OUT
        top, bottom, bits = _cells(rect)
        return sum(
            cost * sum((row & bits).bit_count() for row in rows[top : bottom + 1])
            for cost, rows in self._rows.items()
        )


def _cells(rect: Rect) -> tuple[int, int, int]:
    """Return the first and the last row of a rectangle, and the bits of its columns."""
    x, y, width, height = rect
    left, right = int(max(0, x) // CELL), int(max(0, x + width) // CELL)
    return int(y // CELL), int((y + height) // CELL), ((1 << (right - left + 1)) - 1) << left


def curve(path: Sequence[float]) -> list[Point]:
    """Return points of a cubic curve, no further from each other than a cell; its ends, if it is too long."""
    length = sum(abs(b - a) for a, b in zip(path, path[2:], strict=False))
    steps = max(8, int(length / CELL) * 2)
    return (
        [_at(path, step / steps) for step in range(steps + 1)]
        if steps < _STEPS
        else [_at(path, 0), _at(path, 1)]
    )


def _at(path: Sequence[float], part: float) -> Point:
    left = 1 - part
    weights = left**3, 3 * left**2 * part, 3 * left * part**2, part**3
    x, y = (sum(weight * at for weight, at in zip(weights, path[axis::2], strict=True)) for axis in (0, 1))
    return x, y


def labelled(paths: Mapping[str, Sequence[float]], ground: Ground) -> dict[str, Label]:
    """Return the place of the label of each line. `ground` has the nodes, and gets lines and labels."""
    for path in paths.values():
        ground.draw(curve(path))
    return {name: _placed(path, ground) for name, path in paths.items()}


def _placed(path: Sequence[float], ground: Ground) -> Label:
    best, least = Label(*_at(path, 0.5), 2), _OUT
    for label, rect in _candidates(path):
        cost = ground.cost(rect)
        if cost < least:
            best, least = label, cost
        if not cost:
            break
    ground.fill(rect_of(best), _TEXT)
    return best


def _candidates(path: Sequence[float]) -> Iterator[tuple[Label, Rect]]:
    for lines, gap, part in product((2, 1), _GAPS, _ALONG):
        width, height = TALL if lines == 2 else FLAT
        x, y = _at(path, part)
        for across, down in _WAYS:
            dx, dy = across * (width / 2 + gap), down * (height / 2 + gap)
            label = Label(round(x + dx, 1), round(y + dy, 1), lines)
            yield label, rect_of(label)


def rect_of(label: Label) -> Rect:
    """Return the rectangle in which a label stands."""
    width, height = TALL if label.lines == 2 else FLAT
    return label.x - width / 2, label.y - height / 2, width, height
