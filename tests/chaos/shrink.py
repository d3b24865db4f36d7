"""Shortens a list of faults as long as a run with it still fails. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shortest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a part of `items`, in order, with which it still `fails`; without any one of it, it does not.

    Halves are tried first, then quarters, down to single items.
    """
    kept, size = list(items), max(1, len(items) // 2)
    while True:
        shorter = _without_runs(kept, size, fails)
        if size == 1 and len(shorter) == len(kept):
            return kept
        kept, size = shorter, max(1, min(size, len(shorter)) // 2)


def _without_runs(kept: list[T], size: int, fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out each run of `size` items that is not needed."""
    at = 0
    while at < len(kept):
        shorter = kept[:at] + kept[at + size :]
        if fails(shorter):
            kept = shorter
        else:
            at += size
    return kept
