"""Stated traffic and faults on a simulated plant, and their outcome: crossed, lost, doubled, taken over."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from appliance.simulated.members import AwayError
from appliance.simulated.plant import SimulatedPlant
from appliance.simulated.stated import Deed, Traffic, Verb
from bridges.simulate import SimulationError
from bus.wire.notation import pattern_of
from topologies.model import candidates_of

_STEP_S = 0.01  # how often it is looked who forwards
_SETTLE_S = 2.0  # for what is under way at the end


@dataclass
class Sent:
    """The account of one `Traffic`. `heard`: by place, how often a number came; `refused`: why not sent."""

    traffic: Traffic
    count: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    heard: dict[str, Counter[bytes]] = field(default_factory=dict)

    def send(self, plant: SimulatedPlant) -> None:
        try:
            plant.send(self.traffic.place, self.traffic.pattern, b"%d" % self.count)
        except AwayError:
            self.refused["the gateway was off"] += 1
        except SimulationError:
            self.refused["the wire had no room"] += 1
        else:
            self.count += 1


class Scenario:
    """A run of `seconds` of virtual time. Raises `SimulationError` for a name that is not in the file."""

    def __init__(
        self, plant: SimulatedPlant, traffic: Sequence[Traffic], deeds: Sequence[Deed], seconds: float
    ) -> None:
        self._plant, self._seconds, self._deeds = plant, seconds, sorted(deeds, key=lambda deed: deed.at_s)
        self.accounts = [Sent(one) for one in traffic]
        self.log: list[str] = []
        self._places = list(plant.places)
        for one in traffic:
            if one.place not in self._places:
                raise SimulationError(f"no place {one.place}; there is {', '.join(self._places)}")
        self._start_s = plant.now_s
        bridges = plant.topology.bridges
        self._leased = [
            name
            for name, spec in bridges.items()
            if len(candidates_of(plant.topology, name)) > 1 and not spec.is_parallel
        ]
        self._active = {name: plant.active(name) for name in self._leased}

    @property
    def _now_s(self) -> float:
        return self._plant.now_s - self._start_s

    def run(self) -> None:
        """Run it to its end."""
        due = [0.0] * len(self.accounts)
        while self._now_s < self._seconds:
            for number, account in enumerate(self.accounts):
                while due[number] <= self._now_s:
                    account.send(self._plant)
                    due[number] += 1 / account.traffic.rate
            while self._deeds and self._deeds[0].at_s <= self._now_s:
                self._do(self._deeds.pop(0))
            self._pass(_STEP_S)
        for _ in range(int(_SETTLE_S / _STEP_S)):
            self._pass(_STEP_S)

    def _do(self, deed: Deed) -> None:
        self._say(f"{deed.verb} {deed.target}")
        plant = self._plant
        calls: dict[Verb, Callable[[str], None]] = {
            "fail": plant.fail, "stop": plant.stop, "restart": plant.restart,
            "cut": plant.cut, "mend": plant.mend,
        }  # fmt: skip
        calls[deed.verb](deed.target)

    def _pass(self, seconds: float) -> None:
        self._plant.wait(seconds)
        for place in self._places:
            for tokens, data in self._plant.heard(place):
                self._hear(place, tokens, data)
        for name in self._leased:
            now = self._plant.active(name)
            if now != self._active[name]:
                self._active[name] = now
                self._say(f"bridge {name}: {', '.join(now) or 'nobody'} forwards")

    def _hear(self, place: str, tokens: tuple[int, ...], data: bytes) -> None:
        for account in self.accounts:
            if tuple(pattern_of(account.traffic.pattern)) == tokens:
                account.heard.setdefault(place, Counter())[data] += 1

    def _say(self, text: str) -> None:
        self.log.append(f"{self._now_s:9.3f} s  {text}")

    @property
    def crossed(self) -> int:
        """The number of messages that were heard at other places, each counted once a place."""
        return sum(len(heard) for account in self.accounts for heard in account.heard.values())

    def lines(self) -> Iterator[str]:
        """Yield what happened, and a line for each traffic and each other place."""
        yield from self.log
        for account in self.accounts:
            place, pattern, rate = account.traffic
            refused = "".join(f", {count} not sent: {why}" for why, count in account.refused.items())
            yield f"{pattern} at {place}, {rate:g} a second: {account.count} sent{refused}"
            for other in self._places:
                if other != place:
                    heard = account.heard.get(other, Counter())
                    doubled = heard.total() - len(heard)
                    lost = account.count - len(heard)
                    yield f"  {other}: {len(heard)} heard, {lost} lost, {doubled} doubled"
