"""Rings that a watch has proved: which of their two pipes is cut, and for how long. Time is an argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bus.hub import Pipe

HOLD_DOWN_S = 10.0  # pause before a cut pipe is probed; it doubles each time the loop is still there
HOLD_DOWN_MAX_S = 640.0


class Ring(NamedTuple):
    """A proved loop: a canary left by one pipe and came back by another.

    It came back by the same pipe if somebody behind that returns messages.
    """

    out: Pipe
    back: Pipe

    @property
    def is_echo(self) -> bool:
        return self.out is self.back


@dataclass(slots=True)
class PipeHistory:
    """The history of an attached pipe: when it came, and how long it was cut the last time."""

    number: int
    hold_down_s: float = 0.0
    opened_s: float = float("-inf")

    def next_hold_down_s(self, now: float) -> float:
        """Return how long to cut the pipe now: longer than before if it was opened only lately."""
        lately = now - self.opened_s < self.hold_down_s
        return min(2 * self.hold_down_s, HOLD_DOWN_MAX_S) if lately else HOLD_DOWN_S


@dataclass(slots=True)
class Cut:
    """A pipe that is cut. Nothing passes until canaries, sent after `until_s`, do not come back."""

    pipe: Pipe
    ring: Ring
    like: bytes
    until_s: float
    hold_down_s: float
    probed_s: float | None = None

    def is_in(self, ring: Ring) -> bool:
        """Tell whether a ring is a reason to keep this cut. An echo is none, if a true ring was cut."""
        return self.pipe in ring and (self.ring.is_echo or not ring.is_echo)


def closing(ring: Ring, is_guest: Callable[[Pipe], bool], histories: Mapping[Pipe, PipeHistory]) -> Pipe:
    """Return the pipe of a ring to cut: the pipe of a guest, else the later one, which closed the ring."""
    return max(ring, key=lambda pipe: (is_guest(pipe), histories[pipe].number))
