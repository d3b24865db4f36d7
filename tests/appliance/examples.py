"""The example topologies as they run on one machine: with free ports, and somebody at each of their doors."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from appliance.demo.nullmodem import NullModem
from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.tcp.link import TcpFramesLink
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bus.hub import Hub, Link
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import BareEar, Ear, until
from tests.helpers.ports import free_port
from topologies.model import Topology

EXAMPLES = sorted((ROOT / "topologies").glob("*.yaml"))
DEVICES = ("cold-chain", "meter")  # need devices, which their own tests have
RUNNABLE = [path for path in EXAMPLES if path.stem not in DEVICES]


def relocated(text: str, directory: Path) -> str:
    """Return an example with free ports and paths in place of its fixed ones."""
    ports = {
        port: str(free_port()) for port in set(re.findall(r"(?<=127\.0\.0\.1:)\d+|(?<=port: )\d+", text))
    }
    text = re.sub(r"(?<=127\.0\.0\.1:)\d+|(?<=port: )\d+", lambda m: ports[m[0]], text)
    return text.replace("/tmp/buscoupler-", f"{directory}/")


def doors(topology: Topology, line: Path) -> dict[str, Link]:
    """Return a link from outside for each address, line and CAN bus of a topology, by a name."""
    links: dict[str, Link] = {
        f"{name} {number}": make_link(listen.url, "dial")
        for name, bus in topology.buses.items()
        for number, listen in enumerate(bus.listen)
        if not listen.trunk
    }
    for bridge in topology.bridges.values():
        for side in (side for gateway in bridge.on for side in bridge.at(gateway)):
            if isinstance(side.medium, Uart):
                links["uart"] = UartLink(Uart(port=str(line), baud=side.medium.baud))
            elif isinstance(side.medium, Multicast):
                links["multicast"] = MulticastLink(side.medium)
            elif isinstance(side.medium, Tcp):
                links["tcp"] = TcpFramesLink(replace(side.medium, mode="dial"))
            elif isinstance(side.medium, Can):
                links["can"] = CanLink(replace(side.medium, node=99))
    return links


@asynccontextmanager
async def running(topology: Topology, directory: Path) -> AsyncIterator[dict[str, Ear]]:
    """Run every gateway of a topology, with an `Ear` outside each of its doors; yield when all are joined."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        modem = NullModem(directory, loop)
        stack.callback(modem.close)
        for gateway in topology.gateways:
            appliance = appliance_of(topology, gateway)
            appliance.open(loop)
            stack.callback(appliance.close)
        yield await outside(topology, modem.b, stack)


async def outside(topology: Topology, line: Path, stack: AsyncExitStack) -> dict[str, Ear]:
    """Open an `Ear` outside each door of a topology, and wait until each has its peer."""
    ears = dict[str, Ear]()
    for name, link in doors(topology, line).items():
        hub = Hub(name)
        ears[name] = BareEar(hub)
        link.open(hub, asyncio.get_running_loop())
        stack.callback(link.close)
        await until(lambda hub=hub: len(hub.pipes) == 2)  # type: ignore[misc]
    return ears


def frame(sender: str, *pattern: str) -> bytes:
    return pack(PUB, Pattern(*pattern), sender.encode())


async def rendezvous(ears: dict[str, Ear], *pattern: str) -> None:
    """Greet from every door until every other one has heard it, then discard the greetings."""

    def met() -> bool:
        for name, ear in ears.items():
            ear.say(frame(f"hello {name}", *pattern))
        return all(
            frame(f"hello {name}", *pattern) in other.heard
            for name, ear in ears.items()
            for other in ears.values()
            if other is not ear
        )

    await until(met)
