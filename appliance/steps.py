"""Portions of what a large gateway has to do: a loop turns between them, as all at once would hold it."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

PORTION: Final = 32
"""The hubs or links of one step, which take about 1 ms. A gateway that has no more needs no pauses."""


def portions(things: Sequence[T], most: int = PORTION) -> Iterator[Sequence[T]]:
    """Yield things in portions, each enough for a step."""
    for start in range(0, len(things), most):
        yield things[start : start + most]
