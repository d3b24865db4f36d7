"""What goes wrong in a plant, when, and for how long: all drawn from one seed."""

import errno
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, log
from random import Random
from typing import Any

from bridges.simulate.can import CanPort
from bridges.simulate.tcp import TcpWire
from bridges.simulate.wire import Faults, Wire
from tests.chaos.plant import Plant, Program

STORM_S = 12.0  # in which faults begin
_LENGTH_S = 0.02, 12.0
_GATEWAYS = ("gw-a", "gw-b", "gw-c")
_MACHINES = (*_GATEWAYS, "apps")
_MEDIA = ("can", "lan", "line")
_ENDS = ("gw-a can", "gw-b can", "apps can", "gw-a lan", "gw-b lan", "apps lan", "gw-c line", "apps line")
_PORTS = ("gw-a can", "gw-b can", "apps can")
_WAYS = tuple(f"{one} {other}" for one in _GATEWAYS for other in _GATEWAYS if one != other)
_PAIRS = tuple(f"{one} {other}" for n, one in enumerate(_MACHINES) for other in _MACHINES[n + 1 :])
_SPENT = {"descriptors": errno.EMFILE, "memory": errno.ENOMEM}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: it begins `at_s` after the start of the storm. `rates` is for noise, and a clock's step."""

    kind: str
    target: str
    at_s: float
    length_s: float
    rates: dict[str, float] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        """Return one line for people."""
        rates = "".join(f" {name}={value:g}" for name, value in self.rates.items())
        return f"{self.at_s:7.3f} s  {self.kind:12} {self.target:12} for {self.length_s:.3f} s{rates}"


TARGETS: dict[str, Sequence[str]] = {
    "noise": (*_MEDIA, *_PAIRS),
    "stuck": _MEDIA,
    "bus-off": _PORTS,
    "unplug": _ENDS,
    "clog": _ENDS,
    "partition": (*_PAIRS, *_MACHINES),
    "one-way": (*_WAYS, "gw-a gw-b lan", "gw-b gw-a lan"),
    "half-open": _PAIRS,
    "reset": _PAIRS,
    "freeze": _GATEWAYS,
    "kill": _GATEWAYS,
    "stop": _GATEWAYS,
    "power": _GATEWAYS,
    "clock": _GATEWAYS,
    "descriptors": _GATEWAYS,
    "memory": _GATEWAYS,
}


def one(kind: str, target: str, at_s: str, length_s: str) -> Fault:
    """Return the fault that words describe."""
    assert target in TARGETS[kind], f"{kind}: {', '.join(TARGETS[kind])}"
    return Fault(kind, target, float(at_s), float(length_s))


def draw(seed: int) -> list[Fault]:
    """Return the faults of a seed, in the order of their beginnings."""
    chance = Random(f"faults {seed}")
    count = chance.choice((1, 2, 3, 5, 8, 12, 16))
    return sorted((_one(chance) for _ in range(count)), key=lambda fault: fault.at_s)


def _one(chance: Random) -> Fault:
    kind = chance.choice(list(TARGETS))
    target = chance.choice(TARGETS[kind])
    least, most = map(log, _LENGTH_S)
    length_s = exp(chance.uniform(least, most))
    rates = _rates(chance, target) if kind in ("noise", "clock") else {}
    return Fault(kind, target, round(chance.uniform(0, STORM_S), 3), round(length_s, 3), rates)


def _rates(chance: Random, target: str) -> dict[str, float]:
    """Return the rates of a noise, or the step of a clock, in seconds."""
    if target in _GATEWAYS:
        return {"step_s": round(chance.choice((-1, 1)) * 10 ** chance.uniform(-2, 7), 3)}
    rate = 10 ** chance.uniform(-3, -0.5) * (0.01 if target == "line" else 1)  # there a byte is the unit
    has: dict[str, tuple[str, ...]] = {
        "can": ("loss", "duplication", "reordering", "corruption", "delay_s", "jitter_s")
    }
    has |= {"lan": has["can"], "line": ("loss", "duplication", "corruption", "delay_s", "jitter_s")}
    names = [name for name in has.get(target, ("loss", "delay_s", "jitter_s")) if chance.random() < 0.5]
    return {name: round(min(rate, 0.3), 6) for name in names}


Act = Callable[[Fault], None]


class Trouble:
    """Makes faults happen in a plant, and ends them."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._acts: dict[str, tuple[Act, Act]] = {
            "noise": (lambda f: self._noise(f, Faults(**f.rates)), lambda f: self._noise(f, Faults())),
            "stuck": (lambda f: self._stick(f, True), lambda f: self._stick(f, False)),
            "bus-off": (self._bus_off, _nothing),
            "unplug": (lambda f: self._plug(f, False), lambda f: self._plug(f, True)),
            "clog": (lambda f: self._clog(f, True), lambda f: self._clog(f, False)),
            "partition": (lambda f: self._part(f, True), lambda f: self._part(f, False)),
            "one-way": (lambda f: self._cut(f, True), lambda f: self._cut(f, False)),
            "half-open": (lambda f: self._each(f, lambda wire: wire.halt()), _nothing),
            "reset": (lambda f: self._each(f, lambda wire: wire.reset()), _nothing),
            "freeze": (lambda f: self._at(f).freeze(True), lambda f: self._at(f).freeze(False)),
            "kill": (lambda f: self._at(f).kill(), lambda f: self._at(f).start()),
            "stop": (lambda f: self._at(f).stop(), lambda f: self._at(f).start()),
            "power": (self._power_off, self._power_on),
            "clock": (lambda f: self._at(f).step(f.rates["step_s"]), _nothing),
            "descriptors": (lambda f: self._spend(f, True), lambda f: self._spend(f, False)),
            "memory": (lambda f: self._spend(f, True), lambda f: self._spend(f, False)),
        }

    def begin(self, fault: Fault) -> None:
        self._acts[fault.kind][0](fault)

    def end(self, fault: Fault) -> None:
        self._acts[fault.kind][1](fault)

    def _at(self, fault: Fault) -> Program:
        return self._plant.programs[fault.target]

    def _tcp(self, fault: Fault) -> list[TcpWire]:
        """Return the wires of streams between two machines, or between one and all others."""
        one, _, other = fault.target.partition(" ")
        addresses = {name: self._plant.machine(name).address for name in _MACHINES}
        others = [other] if other else [name for name in _MACHINES if name != one]
        between = self._plant.network.between
        return [wire for name in others for wire in between(addresses[one], addresses[name])]

    def _noise(self, fault: Fault, faults: Faults) -> None:
        wires = self._plant.wires
        chosen: list[Wire] = [wires[fault.target]] if fault.target in wires else [*self._tcp(fault)]
        for wire in chosen:
            wire.faults = faults

    def _stick(self, fault: Fault, stuck: bool) -> None:
        self._plant.wires[fault.target].stuck = stuck

    def _part(self, fault: Fault, stuck: bool) -> None:
        for wire in self._tcp(fault):
            wire.stuck = stuck

    def _cut(self, fault: Fault, cut: bool) -> None:
        source, sink, *lan = fault.target.split()
        (self._plant.deafen if lan else self._plant.cut)(source, sink, cut)

    def _each(self, fault: Fault, act: Callable[[TcpWire], None]) -> None:
        for wire in self._tcp(fault):
            act(wire)

    def _bus_off(self, fault: Fault) -> None:
        port = self._plant.ends[fault.target]
        assert isinstance(port, CanPort)
        if port.is_open:
            port.bus_off()

    def _plug(self, fault: Fault, plugged: bool) -> None:
        end = self._plant.ends[fault.target]
        if plugged:
            end.plug()
        else:
            end.unplug()

    def _clog(self, fault: Fault, clogged: bool) -> None:
        self._plant.ends[fault.target].clogged = clogged

    def _power_off(self, fault: Fault) -> None:
        """Switch the machine off: nobody hears that its connections have ended."""
        program = self._at(fault)
        program.host.off = True
        for wire in self._tcp(fault):
            wire.halt()
        program.kill()

    def _power_on(self, fault: Fault) -> None:
        """Switch it on again. It resets connections that it does not know."""
        program = self._at(fault)
        program.host.off = False
        for wire in self._tcp(fault):
            wire.reset()
        program.start()

    def _spend(self, fault: Fault, spent: bool) -> None:
        self._at(fault).host.spent = _SPENT[fault.kind] if spent else 0


def _nothing(_: Fault) -> None:
    pass
