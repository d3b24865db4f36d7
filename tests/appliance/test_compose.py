"""Parts of a topology that connect only over the network."""

import asyncio

import pytest

from appliance.compose import Appliance
from bus.errors import TopologyError
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


CHANGING = """\
name: changing
gateways: {{gw: {{address: 127.0.0.1}}, far: {{address: 127.0.0.1}}}}
brokers:
  main: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}
  spare: {{on: far, listen: "tcp://127.0.0.1:{1}"}}
buses:
  one: {{on: gw, listen: ["tcp://127.0.0.1:{2}"]}}
  two: {{on: gw, listen: ["tcp://127.0.0.1:{3}"]}}
  three: {{on: gw, listen: ["tcp://127.0.0.1:{4}"]}}
bridges:
  alone: {{on: gw, pattern: [a], join: [{{bus: one}}, {{bus: two}}]}}
  standby: {{on: [gw, far], pattern: [b], join: [{{bus: two}}, {{bus: three}}]}}
"""


async def test_a_change_opens_anew_what_differs_and_what_joins_it_and_nothing_else() -> None:
    text = CHANGING.format(*[free_port() for _ in range(5)])
    appliance = Appliance(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        assert appliance.change(loads(text.replace("[a]", "[c]"))) == ["bridge alone"]
        assert appliance.change(loads(text)) == ["bridge alone"]
        fewer = "".join(line for line in text.splitlines(True) if "spare" not in line)
        assert appliance.change(loads(fewer)) == ["bridge standby", "broker main"]
        assert appliance.change(loads(text)) == ["bridge standby", "broker main"]
        trunk = text.replace("one: {on: gw, listen: [", "one: {on: gw, message_bytes: 4000, listen: [")
        assert appliance.change(loads(trunk)) == ["bridge alone", "bus one"]
        here = trunk.replace("{gw: {address: 127.0.0.1}", "{gw: {address: 127.0.0.2}")
        assert len(appliance.change(loads(here))) == 6
        assert appliance.change(loads(here)) == []
        moved = here.replace("far: {address: 127.0.0.1}", "far: {address: 127.0.0.3}")
        assert appliance.change(loads(moved)) == []
        with pytest.raises(TopologyError, match="no gateway"):
            appliance.change(loads(REMOTE.format(1, 2)))
        assert appliance.change(loads(moved)) == []
    finally:
        appliance.close()


@pytest.mark.parametrize(
    ("text", "gateway", "other", "changed"),
    [(REMOTE, "gw-b", "gw-a", ["bridge joint"]), (CHANGING, "gw", "far", ["bridge standby", "broker main"])],
)
async def test_a_part_is_made_anew_when_another_gateway_that_it_dials_has_moved(
    text: str, gateway: str, other: str, changed: list[str]
) -> None:
    text = text.format(*[free_port() for _ in range(5)]).replace("tcp://127.0.0.1", "tcp://0.0.0.0")
    appliance = Appliance(loads(text), gateway)
    appliance.open(asyncio.get_running_loop())
    try:
        moved = text.replace(other + ": {address: 127.0.0.1}", other + ": {address: 127.0.0.3}")
        assert appliance.change(loads(moved)) == changed
        assert appliance.change(loads(moved)) == []
    finally:
        appliance.close()
