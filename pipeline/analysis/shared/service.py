"""The rules of service: who is served, how long a pause counts, when frames were missed meanwhile. Pure.

The numbers are Python's or Spark's columns: both know the operators that are used here.
"""

from typing import Any, Final

GAP_MS: Final = 100
BIN_NS: Final = 10_000_000  # frames are counted in bins of 10 ms
MISSED_LEAST: Final = 3
"""Frames that came meanwhile on other segments: fewer prove no gap, but a quiet time."""

ECHOES_MOST: Final = 10
"""One frame put onto a segment, of so many that it brings, is an echo; as many prove that others came."""


def is_pause(silence_ns: Any, gap_ms: int) -> Any:
    """Return whether nobody put anything for longer than `gap_ms`."""
    return silence_ns > gap_ms * 1_000_000


def is_whole_bin(number: Any, start_ns: Any, end_ns: Any) -> Any:
    """Return whether the bin of this number lies within a pause."""
    return (number * BIN_NS >= start_ns) & ((number + 1) * BIN_NS <= end_ns)


def is_served(put: Any, brought: Any) -> Any:
    """Return whether the frames `put` onto a segment are a service: a few beside many `brought` are
    echoes."""
    return (put > 0) & (put * ECHOES_MOST >= brought)


def are_missed(others: Any, own: Any) -> Any:
    """Return whether frames were missed in a pause: the busiest of the `others` had more than the `own`
    segment.

    What the segment brought itself was not for it.
    """
    more = others - own
    return (more >= MISSED_LEAST) & (more * ECHOES_MOST >= own)
