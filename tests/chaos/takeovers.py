"""Takeovers in virtual time: numbered frames go both ways while one fault after another hits who forwards."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bus.leases.candidacy import Candidacy
from tests.chaos.clock import begin, clock
from tests.chaos.plant import Plant, Program
from tests.chaos.stations import Key, Station, stations
from tests.rigs.takeovers.faults import FAULTS, Faults
from tests.rigs.takeovers.load import CATCH_UP_S

KINDS = (*FAULTS, "both stalled", "second kill", "second freeze")
BRIDGES = {"motor": "can", "lamp": "lan"}
"""With envelopes, and without: the station at the far end of each."""
SECOND_S = 0.2
"""A second fault comes so soon after a gateway is back."""
_LOOK_S = 0.005
_PATIENCE_S = 30.0


@dataclass
class Outcome:
    """The effect of one fault on one bridge, in frames and milliseconds."""

    kind: str
    bridge: str
    sent: int = 0
    lost: int = 0
    doubled: int = 0
    echoed: int = 0
    wait_ms: float = 0.0
    keys: list[Key] = field(default_factory=list, repr=False)

    def told(self) -> dict[str, Any]:
        """Return the counts."""
        return {name: value for name, value in vars(self).items() if name != "keys"}


class Drill(Faults[[Program, Program, str], None]):
    """A plant whose brokers have machines of their own, and three stations that send at a rate."""

    def __init__(self, seed: int, rate: float) -> None:
        begin(seed)
        self.chance = Random(f"takeovers {seed}")
        self.plant = Plant(apart=True)
        made = stations()
        self.stations: dict[str, Station] = {name: made[name] for name in ("hall-c", *BRIDGES.values())}
        self.outcomes: list[Outcome] = []
        self._said: list[Key] = []
        self._pause_s = 1 / rate
        self._apps = self.plant.apps.program("apps")
        self.plant.scheduler.add(self._apps)
        self._gateways = [self.plant.programs[name] for name in ("gw-a", "gw-b")]
        self._brokers = [self.plant.programs[name] for name in ("br-1", "br-2")]
        self._acts = self.acts | {
            "both stalled": self._both_stalled,
            "second kill": self._second_kill,
            "second freeze": self._second_freeze,
        }

    def run(self, faults: list[tuple[str, str]]) -> list[Outcome]:
        """Cause faults, of a kind and to who forwards for a bridge, one after another."""
        with self.plant.network.installed():
            self.start()
            for kind, bridge in faults:
                self._fault(kind, bridge)
            self.finish()
        return self.outcomes

    def start(self, load_s: float = 1.0) -> None:
        """Start all programs and stations, and the load `load_s` later."""
        for program in self.plant.programs.values():
            program.start()
        self._apps.call_soon(self._open, load_s)

    def finish(self) -> None:
        """Count the frames that came twice or back, and close everything."""
        self._count_again()
        for station in self.stations.values():
            station.close()
        self.plant.close()

    def _open(self, load_s: float) -> None:
        for station in self.stations.values():
            station.open(self._apps)
        self._apps.call_later(load_s, self._say)

    def _say(self) -> None:
        for word, name in BRIDGES.items():
            for sender in ("hall-c", name):
                self._said.append(self.stations[sender].say(word, self.chance.randbytes(28)))
        self._apps.call_later(self._pause_s, self._say)

    def _go(self, time_s: float) -> None:
        self.plant.scheduler.run(clock.now_s + time_s)

    def _until(self, holds: Callable[[], bool], what: str, limit_s: float = _PATIENCE_S) -> None:
        end_s = clock.now_s + limit_s
        while not holds():
            if clock.now_s > end_s:
                raise TimeoutError(what)
            self._go(_LOOK_S)

    def _candidacy(self, program: Program, bridge: str) -> Candidacy | None:
        return next((one for one in program.candidacies() if one.bridge == bridge), None)

    def _forwards(self, program: Program, bridge: str) -> bool:
        found = self._candidacy(program, bridge)
        return found is not None and found.gate.forwarding

    def _is_ready(self, program: Program, bridge: str) -> bool:
        found = self._candidacy(program, bridge)
        if found is None or program.loop is None or program.loop.frozen:
            return False
        granted = [view.reach == "up" and view.grant is not None for view in found.candidate.views]
        return found.candidate.ready and all(granted)

    def _is_calm(self) -> bool:
        """Tell whether one gateway forwards for each bridge, and the other is ready to."""
        return all(
            sum(self._forwards(one, bridge) for one in self._gateways) == 1
            and all(self._is_ready(one, bridge) for one in self._gateways)
            for bridge in BRIDGES
        )

    def calm(self, kind: str) -> None:
        """Wait until a fault may come; the frames from shortly before it on will be counted."""
        while True:
            self._until(self._is_calm, f"calm before {kind}")
            self._said.clear()  # what is on its way when the fault comes counts too
            self._go(self.chance.uniform(0.05, 0.3))
            if self._is_calm():
                break

    def _fault(self, kind: str, bridge: str) -> None:
        self.calm(kind)
        active = next(one for one in self._gateways if self._forwards(one, bridge))
        other = next(one for one in self._gateways if one is not active)
        self._acts[kind](active, other, bridge)
        self._account(kind)

    def _account(self, kind: str) -> None:
        """Wait for the frames since the fault, and count them."""
        said = list(self._said)
        due = [(key, self._receiver(key)) for key in said]
        with suppress(TimeoutError):
            self._until(lambda: all(key in at.heard for key, at in due), kind, CATCH_UP_S)
        for bridge in BRIDGES:
            self.outcomes.append(self._outcome(kind, bridge, [key for key in said if key.word == bridge]))

    def _receiver(self, key: Key) -> Station:
        return self.stations[BRIDGES[key.word] if key.sender == "hall-c" else "hall-c"]

    def _outcome(self, kind: str, bridge: str, keys: list[Key]) -> Outcome:
        returned = self.stations[BRIDGES[bridge]].take_returned()
        made = Outcome(kind, bridge, len(keys), echoed=returned, keys=keys)
        for key in keys:
            times = self._receiver(key).heard.get(key)
            made.lost += not times
            if times:
                sent_s = self.stations[key.sender].sent[key]
                made.wait_ms = max(made.wait_ms, 1000 * (times[0] - sent_s))
        return made

    def _count_again(self) -> None:
        """Count the frames that came twice or back; a gateway that was frozen sends late."""
        self._go(1.0)
        for outcome in self.outcomes:
            for key in outcome.keys:
                outcome.doubled += len(self._receiver(key).heard.get(key, [0])) - 1
                outcome.echoed += len(self.stations[key.sender].heard.get(key, []))

    def _taken_over(self, program: Program, bridge: str) -> None:
        self._until(lambda: self._forwards(program, bridge), f"takeover by {program.name}", 10)

    def _some(self, least_s: float, most_s: float) -> None:
        self._go(self.chance.uniform(least_s, most_s))

    def stop(self, active: Program, other: Program, bridge: str) -> None:
        active.stop()
        self._taken_over(other, bridge)
        active.start()

    def kill(self, active: Program, other: Program, bridge: str) -> None:
        active.kill()
        self._taken_over(other, bridge)
        active.start()

    def freeze(self, active: Program, other: Program, bridge: str) -> None:
        active.freeze(True)
        self._taken_over(other, bridge)
        self._some(0.1, 0.5)
        active.freeze(False)

    def link_down(self, active: Program, other: Program, bridge: str) -> None:
        end = self.plant.ends[f"{active.name} {BRIDGES[bridge]}"]
        end.unplug()
        self._taken_over(other, bridge)
        self._some(0.1, 0.4)
        end.plug()

    def broker_down(self, active: Program, other: Program, bridge: str) -> None:
        broker = self.chance.choice(self._brokers)
        broker.kill()
        self._some(0.3, 0.6)
        broker.start()
        self._go(0.5)

    def all_brokers_down(self, active: Program, other: Program, bridge: str) -> None:
        for broker in self._brokers:
            broker.kill()
        self._some(0.5, 1.0)
        for broker in self._brokers:
            broker.start()
        self._go(0.7)

    def broker_and_bridge(self, active: Program, other: Program, bridge: str) -> None:
        broker = self.chance.choice(self._brokers)
        broker.kill()
        active.kill()
        self._taken_over(other, bridge)
        broker.start()
        active.start()

    def partition(self, active: Program, other: Program, bridge: str) -> None:
        between = self.plant.network.between
        wires = [
            wire for broker in self._brokers for wire in between(active.host.address, broker.host.address)
        ]
        for wire in wires:
            wire.stuck = True
        self._taken_over(other, bridge)
        self._some(0.1, 0.5)
        for wire in wires:
            wire.stuck = False

    def _both_stalled(self, active: Program, other: Program, bridge: str) -> None:
        """Freeze both, not quite at once, and let them go on, not quite at once."""
        for program in self.chance.sample(self._gateways, 2):
            program.freeze(True)
            self._some(0.0, 0.05)
        self._go(10 ** self.chance.uniform(-1.5, 0.3))
        for program in self.chance.sample(self._gateways, 2):
            program.freeze(False)
            self._some(0.0, 0.05)
        self._go(0.5)

    def _second_kill(self, active: Program, other: Program, bridge: str) -> None:
        self.kill(active, other, bridge)
        self._some(0.0, SECOND_S)
        self.kill(other, active, bridge)

    def _second_freeze(self, active: Program, other: Program, bridge: str) -> None:
        self.freeze(active, other, bridge)
        self._some(0.0, SECOND_S)
        self.freeze(other, active, bridge)


def plan(count: int, seed: int, kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return faults in a seeded order, spread evenly over kinds and bridges."""
    both = list(BRIDGES)
    faults = [(kinds[n % len(kinds)], both[n // len(kinds) % 2]) for n in range(count)]
    Random(seed).shuffle(faults)
    return faults


def drills(count: int, seed: int, kinds: tuple[str, ...], each: int, rate: float) -> Iterator[list[Outcome]]:
    """Yield the outcomes of `count` faults, `each` so many on one plant."""
    faults = plan(count, seed, kinds)
    for first in range(0, count, each):
        yield Drill(seed + first, rate).run(faults[first : first + each])
