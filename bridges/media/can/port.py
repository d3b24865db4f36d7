"""An open CAN bus, as a link uses it. Its two kinds are `own_socket` and `python_can`."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from bridges.items import CanFrame
from bridges.media.can.source import SourceInput
from bridges.media.can.state import State

FRAMES: Final = 256
"""The most frames that are read in one wake-up."""

Stamped = tuple[CanFrame, int]
"""A frame, and when it came: in ns since 1970."""


class Arrivals(NamedTuple):
    """The frames that were read, whether more may be waiting, and why the bus is lost ("" if it is not).

    `stamps_ns` are the times at which each frame came, in ns since 1970, of the kernel or the adapter; () if
    they are not known.
    """

    frames: Sequence[CanFrame]
    more: bool
    fault: str
    stamps_ns: Sequence[int]


class Port(Protocol):
    """An open bus. If it `confirms`, `read` returns our own frames too, marked `OWN`, when they were sent."""

    confirms: bool
    overruns: int  # frames lost since it was last set to 0

    @property
    def is_alone(self) -> bool:
        """Whether it is known that nobody else is on the bus."""

    def fileno(self) -> int | None:
        """Return the descriptor to wait on, or None if the interface has none."""

    def read(self, unreadable: Callable[[], bool]) -> Arrivals:
        """Read up to 256 frames without waiting. `unreadable()` counts a bad input: True after too many."""

    def take_heard(self) -> SourceInput | None:
        """Return what came since the last call; None if the port knows of frames only."""

    def write(self, frame: CanFrame) -> None:
        """Send one frame. Raises `OSError` with an errno, which is EAGAIN if the driver gave none."""

    def write_some(self, frames: Sequence[CanFrame]) -> int:
        """Send some of these frames, in order. Return how many, at least 1. Raises `OSError` like `write`."""

    def state(self) -> State:
        """Return the state that the interface reports, or `unknown` if it reports none."""

    def close(self) -> None: ...


def shut_down(bus: Any) -> None:
    """Close a bus. Suppresses all exceptions, because a driver may raise any when the device is gone."""
    with contextlib.suppress(Exception):
        bus.shutdown()
    with contextlib.suppress(Exception):  # slcan: shutdown() fails before this if the adapter is gone
        bus.serialPortOrig.close()
