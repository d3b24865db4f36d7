"""Parts of a topology that only meet over the network."""

import asyncio

from appliance.compose import Appliance
from bus.hub import Hub
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from tests.appliance.probe.support import free_port
from tests.helpers.peers import Ear, until
from topologies.loader import loads

REMOTE = """\
name: remote
gateways:
  gw-a: {{address: 127.0.0.1}}
  gw-b: {{address: 127.0.0.1}}
buses:
  near: {{on: gw-b, listen: ["tcp://127.0.0.1:{0}"]}}
  far: {{on: gw-a, listen: ["tcp://0.0.0.0:{1}"]}}
bridges:
  joint: {{on: gw-b, join: [{{bus: near}}, {{bus: far}}]}}
"""


async def test_a_bridge_reaches_the_bus_of_another_gateway() -> None:
    ports, loop = (free_port(), free_port()), asyncio.get_running_loop()
    topology = loads(REMOTE.format(*ports))
    appliances = [Appliance(topology, gateway) for gateway in topology.gateways]
    for appliance in appliances:
        appliance.open(loop)
    hubs = [Hub("near"), Hub("far")]
    links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in ports]
    ears = [Ear(hub) for hub in hubs]
    for link, hub in zip(links, hubs, strict=True):
        link.open(hub, loop)
    for speaker, listener in (ears, reversed(ears)):
        await until(lambda s=speaker, h=listener: (s.say(pack(PUB, (1,))), h.heard)[1])  # type: ignore[misc]
    for link in links:
        link.close()
    for appliance in appliances:
        appliance.close()
