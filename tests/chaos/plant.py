"""The plant: three gateways and two brokers on simulated machines, and the four media that they share."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from appliance.process.serve import drain
from bridges.media.multicast.sockets import Sockets
from bridges.simulate.can import CanPort, CanWire
from bridges.simulate.multicast import MulticastEnd, MulticastWire
from bridges.simulate.uart import SerialEnd, SerialLine, SerialPort
from bridges.simulate.wire import Wire
from bus.errors import LinkError
from bus.hub import Hub
from bus.leases.candidacy import Candidacy
from tests.chaos.clock import clock
from tests.chaos.hosts import Host, Network, brief
from tests.chaos.loops import ProgramLoop, Scheduler
from tests.helpers.appliances import appliance_of
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.model import Topology

PLANT = """\
name: plant
gateways:
  gw-a: {address: 10.0.0.1, node: 1, busy_poll_us: 1000}
  gw-b: {address: 10.0.0.2, node: 2}
  gw-c: {address: 10.0.0.3, node: 3}
brokers:
  main: {on: gw-a, listen: "tcp://10.0.0.1:9942"}
  spare: {on: gw-c, listen: "tcp://10.0.0.3:9942"}
buses:
  hall-a:
    on: gw-a
    listen: ["tcp://10.0.0.1:5555", {url: "tcp://10.0.0.1:5556", trunk: true}]
    trunks: [hall-b, hall-c]
  hall-b:
    on: gw-b
    listen: ["tcp://10.0.0.2:5555", {url: "tcp://10.0.0.2:5556", trunk: true}]
    trunks: hall-c
  hall-c:
    on: gw-c
    listen: ["tcp://10.0.0.3:5555", {url: "tcp://10.0.0.3:5556", trunk: true}]
bridges:
  motor:
    on: [gw-a, gw-b]
    pattern: motor
    join:
      - bus: {gw-a: hall-a, gw-b: hall-b}
      - {can: {interface: virtual, channel: can0, fd: true}, trunk: true}
  lamp:
    on: [gw-b, gw-a]
    pattern: lamp
    join:
      - bus: {gw-a: hall-a, gw-b: hall-b}
      - {multicast: {group: 239.0.0.1, port: 9943, interface: eth0}, trunk: false}
  panel:
    on: gw-c
    pattern: panel
    join: [bus: hall-c, uart: {port: ttyS0}]
"""
_RESTART_S = 1.0
CLEAR_OF_GATEWAYS = {"main: {on: gw-a, ": "main: {on: br-1, ", "spare: {on: gw-c, ": "spare: {on: br-2, "}
"""Changes by which the brokers have machines of their own."""


class Program:
    """A gateway's program on its machine: it can be started, stopped, killed, frozen, more than once."""

    def __init__(self, plant: "Plant", name: str, host: Host) -> None:
        self.name, self.host = name, host
        self._plant = plant
        self.appliance: Appliance | None = None
        self.loop: ProgramLoop | None = None
        self.steps_s = 0.0
        self.starts_s: list[float] = []
        self._wanted = False
        self.problems: list[str] = []

    @property
    def restarts(self) -> int:
        return len(self.starts_s) - 1

    def start(self) -> None:
        """Start the program, unless it runs; if it is about to end, again then."""
        self._wanted = True
        if self.loop is not None:
            return
        self.starts_s.append(clock.now_s)
        self.loop = self.host.program(self.name)
        self.loop.steps_s = self.steps_s
        self._plant.scheduler.add(self.loop)
        self.loop.create_task(self._open(self.loop))

    async def _open(self, loop: ProgramLoop) -> None:
        appliance = appliance_of(self._plant.topology, self.name)
        try:
            appliance.open(loop)
        except LinkError:  # it ends with 1, and the service manager starts it again
            await asyncio.sleep(_RESTART_S)
            self._plant.scheduler.later(lambda: self._ended(loop))
        else:
            self.appliance = appliance

    def stop(self) -> None:
        """Let the program drain and close, as SIGTERM does. It does not look while it is frozen."""
        self._wanted = False
        if self.loop is not None and self.appliance is not None:
            self.loop.create_task(self._close(self.loop, self.appliance))

    async def _close(self, loop: ProgramLoop, appliance: Appliance) -> None:
        await drain(appliance)
        if self.loop is loop:
            appliance.close()
            self._plant.scheduler.later(lambda: self._ended(loop))

    def _ended(self, loop: ProgramLoop) -> None:
        if self.loop is loop:
            wanted = self._wanted
            self.kill()
            if wanted:
                self.start()

    def kill(self) -> None:
        """End the program at once, with nothing said."""
        loop, appliance = self.loop, self.appliance
        self._wanted = False
        if loop is None:
            return
        self.loop = self.appliance = None
        self.host.die()
        self.problems += loop.problems
        self._bury(loop, appliance)

    def _bury(self, loop: ProgramLoop, appliance: Appliance | None) -> None:
        """Free what a dead program held. Nothing of it can get out any more."""
        self._plant.network.owners.pop(loop)
        loop.set_exception_handler(lambda *_: None)
        if appliance is not None:
            loop.call_soon(appliance.close)
        self._plant.scheduler.settle(loop)
        self._plant.scheduler.remove(loop)

    def freeze(self, frozen: bool) -> None:
        """Stop the program where it stands, or let it go on."""
        if self.loop is not None:
            self.loop.frozen = frozen

    def step(self, steps_s: float) -> None:
        """Set the time of day of the machine so far ahead, or back."""
        self.steps_s = steps_s
        if self.loop is not None:
            self.loop.steps_s = steps_s

    def candidacies(self) -> Iterable[Candidacy]:
        """Return what this gateway stands for."""
        parts = [] if self.appliance is None else self.appliance.parts.values()
        return [part.candidacy for part in parts if isinstance(part, BridgePart) and part.candidacy]

    def hubs(self) -> list[Hub]:
        """Return the hubs of the running program."""
        return [] if self.appliance is None else list(self.appliance.hubs())


class Plant:
    """All machines, wires and programs. `apart`: the brokers have machines of their own."""

    def __init__(self, apart: bool = False) -> None:
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler)
        self.topology = _topology(apart)
        self.programs = {
            name: Program(self, name, self.network.host(name, gateway.address))
            for name, gateway in self.topology.gateways.items()
        }
        self.apps = self.network.host("apps", "10.0.0.9")
        self.can, self.lan = brief(CanWire(seed=1)), brief(MulticastWire(seed=2))
        self.line = brief(SerialLine(seed=3))
        self.ends: dict[str, CanPort | MulticastEnd | SerialEnd] = {}
        for name in ("gw-a", "gw-b", "apps"):
            self._equip(name)
        self._cable("gw-c")
        self._cable("apps")

    @property
    def wires(self) -> dict[str, Wire]:
        """The media that are no streams, by their names."""
        return {"can": self.can, "lan": self.lan, "line": self.line}

    def machine(self, name: str) -> Host:
        return self.apps if name == "apps" else self.programs[name].host

    def _equip(self, name: str) -> None:
        port, member, loop = self.can.port(f"{name} can"), self.lan.member(f"{name} lan"), self.network.loop

        def open_can() -> tuple[Any, Callable[[], None]]:
            bus = port.open(loop)
            return bus, bus.shutdown

        self.machine(name).devices |= {"can0": open_can, "eth0": lambda: _with_close(member.open(loop))}
        self.ends |= {port.name: port, member.name: member}

    def _cable(self, name: str) -> None:
        end, loop = self.line.end(f"{name} line"), self.network.loop
        self.machine(name).devices["ttyS0"] = lambda: _with_close(SerialPort(end, loop))
        self.ends[end.name] = end

    def cut(self, source: str, sink: str, cut: bool) -> None:
        """Let nothing on streams come from one machine to another, or let it come again."""
        network, one, other = self.network, self.machine(source).address, self.machine(sink).address
        dialled, taken = network.wire(one, other), network.wire(other, one)
        dialled.cut(dialled.server, cut)
        taken.cut(network.ends[other, one], cut)

    def deafen(self, source: str, sink: str, deaf: bool) -> None:
        """Let one machine hear nothing of what another sends to the multicast group, or let it hear again."""
        end, other = self.ends[f"{sink} lan"], self.ends[f"{source} lan"]
        assert isinstance(end, MulticastEnd)
        assert isinstance(other, MulticastEnd)
        (end.deaf_to.add if deaf else end.deaf_to.discard)(other)

    def close(self) -> None:
        for program in self.programs.values():
            program.kill()
        self.scheduler.close()


def _with_close(device: Sockets | SerialPort) -> tuple[Any, Callable[[], None]]:
    return device, device.close


def _topology(apart: bool) -> Topology:
    text = PLANT
    if apart:
        for old, new in CLEAR_OF_GATEWAYS.items():
            text = text.replace(old, new)
        text = text.replace("10.0.0.1:9942", "10.0.0.11:9942").replace("10.0.0.3:9942", "10.0.0.12:9942")
        text = text.replace(
            "brokers:", "  br-1: {address: 10.0.0.11}\n  br-2: {address: 10.0.0.12}\nbrokers:"
        )
    made = loads(text, "plant.yaml")
    assert not [finding for finding in check(made) if finding.level == "error"]
    return made
