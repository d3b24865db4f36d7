"""One hop of a frame, as a rehearsal foresees it and as a trace saw it. Pure."""

from collections.abc import Mapping
from typing import NamedTuple


class Exit(NamedTuple):
    """The outcome of a frame at one way out of a part, which leads to a link or to another part.

    `at_ns` is the time when the last of `pipes` sent the frame, and `pipes` counts those that did; `at_ns` is
    None if none did. `stopped` has the reasons why it did not leave. `inside`: the exit leads to parts of the
    same gateway only; `bus`: it leads to that bus of the file, on another gateway. A rehearsal has no pipes:
    its times are 0 or None.
    """

    to: str
    at_ns: int | None = None
    pipes: int = 0
    inside: bool = False
    bus: str = ""
    stopped: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Hop(NamedTuple):
    """One arrival of a frame at a part, by one of its links. `stopped` has the reasons why it did not enter.

    `bus`: it came from that bus of the file, which is on another gateway.
    """

    part: str
    gateway: str
    by: str
    at_ns: int = 0
    bus: str = ""
    stopped: tuple[str, ...] = ()
    exits: tuple[Exit, ...] = ()
    remarks: tuple[str, ...] = ()


def gained(counts: Mapping[str, int], before: Mapping[str, int]) -> tuple[str, ...]:
    """Return the reasons that have counted anything since `before`."""
    return tuple(reason for reason, count in counts.items() if count > before.get(reason, 0))
