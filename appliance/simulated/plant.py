"""A whole plant on one simulated loop: all gateways, wires that can be cut, and what a test has there."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from appliance.alarms.keeping import MemoryKeeper
from appliance.compose import Appliance
from appliance.simulated.connections import Connections, PlantLoop, VirtualLoop
from appliance.simulated.listeners import Telling, told_by
from appliance.simulated.media import Cable, CableEnd, Cables, options_of
from appliance.simulated.members import AwayError, HubMember, Member, Message, on_wire
from bridges.simulate import CanWire, SerialLine, SimulationError
from bus.wire.notation import pattern_of, text_of
from topologies.loading.loader import load
from topologies.model import Topology
from topologies.model.status import StatusSpec
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring, wired

T = TypeVar("T")
_NODES = 127  # Cyphal ids from here down are the test's


class SimulatedPlant:
    """All gateways of a topology in virtual time; each call that waits returns at once in real time.

    A place is the name of a bus, or of a wire by its device (`can0`; GATEWAY:DEVICE where several have it).
    Media are simulated; buses, trunks and brokers are sockets of this machine at the addresses of the file.
    There is no status page, and no device of the file (a recorder, an engine) runs. What outlets would tell
    people of alarms is in `told`. Raises `TopologyError`
    for a file that cannot run, and `SimulationError` for a medium that is not simulated, and for a name that
    is not there.
    """

    START_S: ClassVar = 1.0
    """The time for links to open and leases to be granted, before a test begins."""

    def __init__(self, file: str | Path | Topology, seed: int = 0) -> None:
        topology = file if isinstance(file, Topology) else load(file)
        gateways = {
            name: replace(gateway, status=StatusSpec(serve=False))
            for name, gateway in topology.gateways.items()
        }
        self.topology = replace(topology, gateways=gateways, devices={})
        self._state = random.getstate()
        self._wiring = wired(self.topology)
        self._cables = self._new_cables(self._wiring, seed)
        self._members: dict[str, Member] = {}
        self._heard = False
        self._cut_ends: list[CableEnd] = []
        self.gateways: dict[str, Appliance] = {}
        self.told: list[Telling] = []
        self._kept = {name: MemoryKeeper() for name in topology.gateways}
        self._connections = Connections(self.topology)
        self.loop = self._new_loop(self._connections)
        random.seed(seed)
        try:
            self._do(self._begin)
            self.wait(self.START_S)
            self._let_open()
        except BaseException:
            self.close()
            raise

    def _new_loop(self, connections: Connections) -> PlantLoop:
        return VirtualLoop(connections)

    def _new_cables(self, wiring: Wiring, seed: int) -> Cables:
        return Cables(wiring, seed)

    def _do(self, call: Callable[[], T]) -> T:
        """Call a function where the loop runs, and return its result."""
        return call()

    def _let(self, work: Coroutine[Any, Any, T], takes_s: float = 0.0) -> T:
        """Have the loop do some work to its end, and return its result. `takes_s` is how long it may take."""
        return self.loop.run_until_complete(work)

    def _begin(self) -> None:
        for name in self.topology.gateways:
            self._restart(name)
        for place in self.places:
            self._enter(place)

    def _let_open(self) -> None:
        """Let what a gateway opens at its start be open: in virtual time it is."""

    @property
    def now_s(self) -> float:
        """The time of the simulation, in seconds since its start."""
        return self.loop.time()

    @property
    def places(self) -> list[str]:
        """The places at which a test can send, and expect: buses, and wires with room for one more end."""
        cables = zip(self._cables.names(), self._cables.all.values(), strict=True)
        return [
            *self.topology.buses,
            *(name for name, cable in cables if cable.ends_open or name in self._members),
        ]

    def wait(self, seconds: float) -> None:
        """Let so much time pass."""

        async def passing() -> None:
            await asyncio.sleep(seconds)

        self._let(passing(), seconds)

    def send(self, place: str, pattern: str | int, data: bytes = b"") -> None:
        """Send a message, as a program on that bus or a device on that wire.

        Where devices speak a protocol on CAN, the pattern is the identifier; on a serial line it is "".
        """
        message = Message(_tokens(pattern), data)
        self._do(lambda: self._member(place).say(message))

        async def going() -> None:
            await asyncio.sleep(0)

        self._let(going())

    def expect(
        self, place: str, pattern: str | int = "", data: bytes | None = None, within_s: float = 1.0
    ) -> Message:
        """Return the first message that fits and that no `expect` has returned; wait for it up to `within_s`.

        It fits if its pattern begins so, and its data are these. Raises `AssertionError` that says what was
        heard instead.
        """
        member, tokens = self._member(place), _tokens(pattern)
        end_s = self.now_s + within_s
        while True:
            self._heard = False  # before it is looked: in real time messages come meanwhile
            if (message := self._do(lambda: member.take(tokens, data))) is not None:
                return message
            if self.now_s >= end_s:
                raise AssertionError(self._unmet(place, pattern, data, within_s))
            self._wait_for_any(end_s)

    def expect_nothing(self, place: str, pattern: str | int = "", for_s: float = 1.0) -> None:
        """Let time pass. Raises `AssertionError` if a message comes, or waits, whose pattern begins so."""
        try:
            heard = self.expect(place, pattern, within_s=for_s)
        except AssertionError:
            return
        raise AssertionError(f"{place}: heard {_said(heard)} at {self.now_s:.3f} s, and expected nothing")

    def _wait_for_any(self, end_s: float) -> None:
        """Wait until any member hears something, or until a time."""

        async def hearing() -> None:
            while not self._heard and self.now_s < end_s:
                await asyncio.sleep(min(0.001, end_s - self.now_s))

        self._let(hearing(), end_s - self.now_s)

    def _unmet(self, place: str, pattern: str | int, data: bytes | None, within_s: float) -> str:
        heard = [_said(message) for message in list(self._member(place).heard)[-5:]]
        wanted = f"{pattern or 'anything'}{'' if data is None else f' {data!r}'}"
        return (
            f"{place}: {wanted} did not come within {within_s:g} s (it is {self.now_s:.3f} s now); "
            f"heard and not asked for: {', '.join(heard) or 'nothing'}"
        )

    def fail(self, gateway: str) -> None:
        """Kill a gateway: nothing leaves it any more, and it does not resign its leases."""
        self._end(gateway, resign=False)

    def stop(self, gateway: str) -> None:
        """Stop a gateway in good order: it resigns its leases, so that another begins at once."""
        self._end(gateway, resign=True)

    def _end(self, gateway: str, resign: bool) -> None:
        self._known(gateway)
        if gateway not in self.gateways:
            raise SimulationError(f"gateway {gateway} does not run: restart it first")
        self._do(lambda: self._ended(gateway, resign))
        self.wait(0)

    def _ended(self, gateway: str, resign: bool) -> None:
        appliance = self.gateways.pop(gateway)
        for name in self.topology.buses:
            if self.topology.buses[name].on == gateway and name in self._members:
                self._members.pop(name).close()
        if not resign:
            for end in self._cables.ends(gateway):
                end.unplug()
            for part in appliance.parts.values():
                if part.candidacy is not None:
                    part.candidacy.close(resign=False)
        appliance.close()

    def restart(self, gateway: str) -> None:
        """Start a gateway that was failed or stopped. What it had to send is lost, as after a kill."""
        self._known(gateway)
        if gateway in self.gateways:
            raise SimulationError(f"gateway {gateway} runs already: fail or stop it first")
        self._do(lambda: self._restart(gateway))
        self._let_open()

    def _restart(self, gateway: str) -> None:
        for end in self._cables.ends(gateway):
            if end not in self._cut_ends:
                end.plug()
        appliance = Appliance(
            self._cables.beneath(resolve(self._wiring, gateway)),
            clock=self.loop.time,
            keeper=self._kept[gateway],
            make_outlet=told_by(gateway, self.told, self.loop.time),
        )
        self.loop.as_gateway(gateway, lambda: appliance.open(self.loop))
        self.gateways[gateway] = appliance
        for name, bus in self.topology.buses.items():
            if bus.on == gateway:
                self._enter(name)

    def cut(self, place: str, of: str | None = None) -> None:
        """Cut a wire, or the connections to a bus or broker; with `of` that gateway's alone.

        `mend` undoes both. A cut connection ends at both sides at once, and new ones are refused.
        """
        self._do(lambda: self._cut(place, of))

    def _cut(self, place: str, of: str | None) -> None:
        if self._connects(place):
            self._connections.cut(place, self._of(of))
            return
        cable = self._cable(place)
        self._of_end(cable, of)
        if of is None:
            cable.wire.stuck = True
        for end in self._ends(cable, of):
            self._cut_ends.append(end)
            end.unplug()

    def _of_end(self, cable: Cable, of: str | None) -> None:
        """Raise `SimulationError` if the end of one gateway cannot be cut."""

    def mend(self, place: str, of: str | None = None) -> None:
        """Mend what was cut, for all, or for one gateway."""
        self._do(lambda: self._mend(place, of))

    def _mend(self, place: str, of: str | None) -> None:
        if self._connects(place):
            self._connections.mend(place, self._of(of))
            return
        cable = self._cable(place)
        if of is None:
            cable.wire.stuck = False
        for end in self._ends(cable, of):
            self._cut_ends = [one for one in self._cut_ends if one is not end]
            if of in self.gateways:
                end.plug()

    def _connects(self, place: str) -> bool:
        """Return whether a name is that of a bus or broker, and of no wire."""
        return self._cables.named(place) is None and place in self._connections.names

    def _of(self, gateway: str | None) -> str:
        if gateway is not None:
            self._known(gateway)
        return gateway or ""

    def _ends(self, cable: Cable, of: str | None) -> list[CableEnd]:
        if of is None:
            return []
        self._known(of)
        return [end for (gateway, _, _), end in cable.ends.items() if gateway == of]

    def active(self, bridge: str) -> list[str]:
        """Return the gateways that forward for a bridge now: one of those that stand in for each other."""
        if bridge not in self.topology.bridges:
            raise SimulationError(
                f"no bridge {bridge}; the file has {', '.join(self.topology.bridges) or 'none'}"
            )
        found = ((name, app.parts.get(f"bridge {bridge}")) for name, app in self.gateways.items())
        return [
            name
            for name, part in found
            if part is not None and (part.candidacy is None or part.candidacy.candidate.holding)
        ]

    def heard(self, place: str) -> list[Message]:
        """Return and forget all messages at a place that no `expect` has returned."""
        member = self._members.get(place)
        if member is None:
            return []
        return self._do(member.take_all)

    def close(self) -> None:
        """Stop everything. Idempotent."""
        if self.loop.is_closed():
            return
        self._close()
        self.wait(0.01)
        self._end_loop()

    def _close(self) -> None:
        for member in self._members.values():
            member.close()
        for appliance in self.gateways.values():
            appliance.close()
        self._members, self.gateways = {}, {}

    def _end_loop(self) -> None:
        self.loop.close()
        random.setstate(self._state)

    def _known(self, gateway: str) -> None:
        if gateway not in self.topology.gateways:
            raise SimulationError(f"no gateway {gateway}; the file has {', '.join(self.topology.gateways)}")

    def _cable(self, name: str) -> Cable:
        cable = self._cables.named(name)
        if cable is None:
            there = ", ".join([*self._cables.names(), *self._connections.names])
            raise SimulationError(f"no wire, bus or broker {name} can be cut; there is {there or 'none'}")
        return cable

    def _member(self, place: str) -> Member:
        if place not in self._members:
            there = ", ".join(self._members) or "nothing"
            raise AwayError(f"nothing to send to or hear at {place}: there is {there}; does its gateway run?")
        return self._members[place]

    def _enter(self, place: str) -> None:
        """Be a member at a place, unless the test is one already."""
        if place in self._members:
            return
        bus = self.topology.buses.get(place)
        if bus is not None:
            self._members[place] = HubMember(self.gateways[bus.on].parts[f"bus {place}"].hub, self._on_heard)
            return
        cable, taken = self._cable(place), {gateway.node for gateway in self.topology.gateways.values()}
        node = next(node for node in range(_NODES, -1, -1) if node not in taken)
        assert cable.side.medium is not None
        self._members[place] = self._at_wire(cable, options_of(cable.side.medium), node)

    def _at_wire(self, cable: Cable, options: dict[str, Any], node: int) -> Member:
        """Return a member on a wire, open. `node` is its Cyphal id, where it needs one."""
        assert isinstance(cable.wire, CanWire | SerialLine)
        spoken = cable.side.speaks is not None
        return on_wire(cable.wire, spoken, options, node, self._on_heard, self.loop)

    def _on_heard(self) -> None:
        self._heard = True


def _tokens(pattern: str | int) -> tuple[int, ...]:
    if isinstance(pattern, int):
        return (pattern,)
    return tuple(pattern_of(pattern)) if pattern else ()


def _said(message: Message) -> str:
    return f"{text_of(message.tokens)} {message.data!r}"
