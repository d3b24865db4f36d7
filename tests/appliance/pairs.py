"""A pair of redundant gateways in this process, beside a hub with a broker and two buses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from appliance.parts.broker import BrokerPart
from bus.hub import Hub
from bus.leases.candidacy import Candidacy
from bus.leases.table import LeaseTable
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

LEASE_MS = 600  # a machine that also runs other tests can stall for longer than the default 250
LASTING_MS = 5000

PLANT = """\
name: pair
gateways:
  hub: {{address: 127.0.0.1}}
  gw-a: {{address: 127.0.0.1}}
  gw-b: {{address: 127.0.0.1}}
brokers:
  main: {{on: hub, listen: "tcp://127.0.0.1:{0}"}}
buses:
  left: {{on: hub, listen: ["tcp://127.0.0.1:{1}"]}}
  right: {{on: hub, listen: ["tcp://127.0.0.1:{2}"]}}
bridges:
"""
"""A plant of a hub and two gateways, up to its bridges."""

PAIR = f"""{PLANT}\
  joint: {{{{on: [gw-a, gw-b], pattern: [motor], join: [{{{{bus: left}}}}, {{{{bus: right}}}}]}}}}
"""


def lasting(text: str, lease_ms: int = LASTING_MS) -> str:
    """Return a topology whose leases last longer than any stall of a busy machine. A broker that starts with
    it waits for as long."""
    return text.replace("main: {{on: hub,", f"main: {{{{on: hub, lease_ms: {lease_ms},")


class Pair:
    """A hub with a broker, and two gateways, in this process, with an application on each bus."""

    def __init__(self, text: str = PAIR) -> None:
        self.ports = [free_port() for _ in range(4)]
        self.topology = loads(text.format(*self.ports), "pair.yaml")
        self.hub = self.start("hub")
        self.gateways = {name: self.start(name) for name in ("gw-a", "gw-b")}
        self.ears: list[Ear] = []
        self.links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in self.ports[1:3]]
        for link in self.links:
            self.ears.append(Ear(Hub()))
            link.open(self.ears[-1].hub, asyncio.get_running_loop())

    def start(self, name: str) -> Appliance:
        appliance = appliance_of(self.topology, name)
        appliance.open(asyncio.get_running_loop())
        return appliance

    def candidacy(self, name: str) -> Candidacy:
        part = self.gateways[name].parts["bridge joint"]
        assert isinstance(part, BridgePart)
        assert part.candidacy is not None
        return part.candidacy

    def forwards(self, name: str) -> bool:
        return self.candidacy(name).gate.forwarding

    def holds(self, name: str) -> bool:
        """Return whether a gateway forwards by a long lease."""
        left_s = self.candidacy(name).candidate.until_s - asyncio.get_running_loop().time()
        return left_s > LASTING_MS / 2000 and self.forwards(name)

    def change(self, text: str) -> set[str]:
        """Change all gateways; return the lines, each once."""
        self.topology = loads(text, "pair.yaml")
        appliances = [self.hub, *self.gateways.values()]
        return {change.line() for appliance in appliances for change in reloaded(appliance, self.topology)}

    @property
    def table(self) -> LeaseTable:
        part = self.hub.parts["broker main"]
        assert isinstance(part, BrokerPart)
        return part.service.table

    async def cross(self, number: int) -> None:
        """Send a frame across, and check that it arrives exactly once."""
        ears = self.ears
        frame = pack(PUB, Pattern("motor"), str(number).encode())
        ears[0].say(frame)
        await until(lambda: frame in ears[1].heard)
        assert ears[1].heard.count(frame) == 1

    def close(self) -> None:
        for link in self.links:
            link.close()
        for appliance in (*self.gateways.values(), self.hub):
            appliance.close()


@asynccontextmanager
async def forwarding(text: str = PAIR) -> AsyncIterator[Pair]:
    """Start a pair and wait until one of its gateways forwards, by a long lease."""
    made = Pair(text)
    try:
        await until(lambda: all(len(ear.hub.pipes) == 2 for ear in made.ears))
        await until(lambda: any(map(made.forwards, made.gateways)))
        made.change(lasting(text).format(*made.ports))
        await until(lambda: any(map(made.holds, made.gateways)))
        yield made
    finally:
        made.close()
