"""Long work in steps, so that its caller can stop, or let a loop turn, between two steps. Pure."""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

R = TypeVar("R")
T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, R]
"""Work that yields after each step, and returns its result. `close()` abandons it."""
PORTION: Final = 32
"""The hubs or links of one step, which take about 1 ms. A gateway that has no more needs no pauses."""


def finish(steps: Steps[R]) -> R:
    """Do all steps at once, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


def portions(things: Sequence[T], most: int = PORTION) -> Iterator[Sequence[T]]:
    """Yield things in portions, each enough for a step."""
    for start in range(0, len(things), most):
        yield things[start : start + most]
