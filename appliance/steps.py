"""Work in steps, between which a loop turns: what a large gateway has to do must not hold it long. Pure."""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

PORTION: Final = 32
"""The hubs or links of one step, which take about 1 ms. A gateway that has no more needs no pauses."""
Steps = Generator[None, None, T]
"""Work that pauses after each step, and returns its result."""


def portions(things: Sequence[T], most: int = PORTION) -> Iterator[Sequence[T]]:
    """Yield things in portions, each enough for a step."""
    for start in range(0, len(things), most):
        yield things[start : start + most]


def finished(steps: Steps[T]) -> T:
    """Take all steps at once, and return what they make."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
