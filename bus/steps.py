"""Long work in steps, so that its caller can stop, or let a loop turn, between two steps. Pure."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

R = TypeVar("R")
Steps: TypeAlias = Generator[None, None, R]
"""Work that yields after each step, and returns its result. `close()` abandons it."""


def finish(steps: Steps[R]) -> R:
    """Do all steps at once, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result
