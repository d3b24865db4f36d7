"""The people of a simulated plant: what outlets would tell them of alarms is noted, and goes nowhere."""

from collections.abc import Callable
from typing import NamedTuple

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Done
from appliance.alarms.telling import MakeOutlet
from bus.hub import Hub, State
from bus.ledger import Stats
from topologies.model.alarms import OutletSpec


class Telling(NamedTuple):
    """A notice that an outlet of a gateway told people, at a time of the simulation in s."""

    at_s: float
    gateway: str
    outlet: str
    notice: Notice


class NotingOutlet:
    """An outlet that notes what it is offered."""

    condition = fault = ""
    losses = queue_bytes = 0
    state: State = "up"

    def __init__(self, name: str, url: str, note: Callable[[Notice], None], done: Done) -> None:
        self.name, self.url, self.stats = name, url, Stats()
        self._note, self._done = note, done

    def open(self, hub: Hub, loop: object) -> None:
        """Do nothing."""

    def revise(self, other: object) -> bool:
        return False

    def offer(self, notice: Notice) -> bool:
        """Note a notice."""
        self.stats.offered += 1
        self.stats.sent += 1
        self._note(notice)
        self._done(notice, True)
        return True

    def close(self) -> None:
        """Do nothing."""


def told_by(gateway: str, told: list[Telling], now_s: Callable[[], float]) -> MakeOutlet:
    """Return a function that makes the outlets of a gateway; they note in `told`."""

    def make(name: str, spec: OutletSpec, done: Done) -> NotingOutlet:
        def note(notice: Notice) -> None:
            told.append(Telling(now_s(), gateway, name, notice))

        return NotingOutlet(name, spec.url, note, done)

    return make
