"""Rings that a watch has proved: which of their two pipes is cut, and for how long. Time is an argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bus.hub import Pipe

HOLD_DOWN_S = 10.0  # pause before a cut pipe is probed; it doubles each time the loop is still there
HOLD_DOWN_MAX_S = 640.0
PROBE_S, PROBES = 0.5, 2  # a cut opens if so many canaries, one after another, do not come back in this time
FRESH_S = 2.0  # so long canaries of other hubs cross a cut
ECHOES = 8  # returns of one canary by its own pipe: an echo brings it once, a ring behind the pipe for ever


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
    """A pipe that is cut. Nothing passes until canaries, sent after `until_s`, do not come back.

    `probe` is the name of the canary that tries it now, sent at `probed_s`, after `silent` others.
    """

    pipe: Pipe
    ring: Ring
    like: bytes
    until_s: float
    hold_down_s: float
    since_s: float
    probe: bytes = b""
    probed_s: float = 0.0
    silent: int = 0

    def is_in(self, ring: Ring) -> bool:
        """Tell whether a ring is a reason to keep this cut. An echo is none, if a true ring was cut."""
        return self.pipe in ring and (self.ring.is_echo or not ring.is_echo)

    def is_fresh(self, now: float) -> bool:
        """Tell whether other hubs may still hold copies that went round before the cut."""
        return now <= self.since_s + FRESH_S

    def is_probe_due(self, now: float) -> bool:
        """Tell whether a canary is to be sent."""
        return now > self.probed_s + PROBE_S if self.probe else now >= self.until_s

    def is_over(self, now: float) -> bool:
        """Tell whether enough canaries did not come back."""
        return self.silent >= PROBES - 1 and bool(self.probe) and now > self.probed_s + PROBE_S

    def tried(self, probe: bytes, now: float) -> None:
        """Note that a canary has been sent."""
        self.silent += bool(self.probe)
        self.probe, self.probed_s = probe, now

    def keep(self, until_s: float) -> None:
        """Stay cut until a time."""
        self.until_s, self.probe, self.silent = until_s, b"", 0


def closing(ring: Ring, is_guest: Callable[[Pipe], bool], histories: Mapping[Pipe, PipeHistory]) -> Pipe:
    """Return the pipe of a ring to cut: the pipe of a guest, else the later one, which closed the ring."""
    return max(ring, key=lambda pipe: (is_guest(pipe), histories[pipe].number))
