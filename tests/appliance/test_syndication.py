"""The syndication broker of a running topology: sensors on CAN, clients of both generations, and failover."""

import struct
from collections import Counter
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.urls import split_url
from bus.wire.frame import PUB, Frame, pack, unpack
from bus.wire.pattern import Pattern
from devices.syndication.intake import producer_id
from tests.appliance.probe.support import free_port
from tests.appliance.test_examples import relocated, rendezvous, running
from tests.appliance.test_failover import TWO, forwarding
from tests.devices.syndication.tcp_clients import TcpGuest, difference, published
from tests.helpers import ROOT
from tests.helpers.peers import until
from topologies.loader import loads
from topologies.model import Topology

TEMP = Pattern("room-410", "temp")
METADATA = {"Bus": "hall", "Pattern": "room-410/temp", "Unit": "C", "Room": "410"}


def reading(value: float, pattern: Pattern = TEMP) -> bytes:
    return pack(PUB, pattern, struct.pack("<f", value))


async def guest(topology: Topology, stack: AsyncExitStack, tagged: bool) -> TcpGuest:
    """Connect a client to the broker of a topology."""
    listener = next(topology.devices["broker"].listens())
    url = split_url(listener.url)
    return stack.enter_context(closing(await TcpGuest(tagged).connect((url.host, url.port))))


async def test_a_sensor_on_can_is_found_by_its_room(tmp_path: Path) -> None:
    topology = loads(relocated((ROOT / "topologies" / "rooms.yaml").read_text(), tmp_path))
    async with running(topology, tmp_path) as ears, AsyncExitStack() as stack:
        await rendezvous(ears, "motor")
        guests = [await guest(topology, stack, tagged) for tagged in (False, True)]
        for one in guests:
            await one.subscribe('has Unit and Room = "410"')
            await one.told(difference())
        cold, door = Pattern("room-12", "temp"), Pattern("room-410", "door")
        ears["can"].say(reading(4, cold), pack(PUB, door, b'{"open":true}'), reading(21.5), reading(22))
        id = producer_id("hall", TEMP)
        for one in guests:
            values = [published(id, said, value, one.tagged) for said, value in ((METADATA, 21.5), ({}, 22))]
            await one.told(difference([id]), *values)


async def test_what_a_thermostat_publishes_comes_out_on_can(tmp_path: Path) -> None:
    topology = loads(relocated((ROOT / "topologies" / "rooms.yaml").read_text(), tmp_path))
    async with running(topology, tmp_path) as ears, AsyncExitStack() as stack:
        await rendezvous(ears, "motor")
        for number, tagged in enumerate((False, True)):
            thermostat = await guest(topology, stack, tagged)
            await thermostat.publish(f"t{number}", {"Type": "Thermostat"}, 19.5 + number)
        expected = {Frame(PUB, Pattern("heating", f"t{n}"), struct.pack("<f", 19.5 + n)) for n in range(2)}
        for ear in ears.values():
            await until(lambda ear=ear: {unpack(one) for one in ear.heard} >= expected)  # type: ignore[misc]
            assert [Pattern("heating") == unpack(one).tokens[:1] for one in ear.heard].count(True) == 2


BROKER = """
devices:
  broker:
    on: hub
    syndication: tcp://127.0.0.1:{port}
    producers: [{{{{bus: right, pattern: motor, codec: utf-8}}}}]
"""


async def test_a_frame_comes_to_the_broker_once_whichever_gateway_forwards() -> None:
    async with forwarding(TWO + BROKER.format(port=free_port())) as pair, AsyncExitStack() as stack:
        subscriber = await guest(pair.topology, stack, False)
        await subscriber.subscribe("has Pattern")
        await subscriber.told(difference())
        for number in range(20):
            await pair.cross(number)
        first = next(name for name in pair.gateways if pair.forwards(name))
        pair.gateways.pop(first).close()
        for number in range(20, 40):
            pair.ears[0].say(pack(PUB, Pattern("motor"), str(number).encode()))
        await until(lambda: len(subscriber.said) >= 41)
        assert subscriber.said[0] == difference([producer_id("right", Pattern("motor"))])
        assert Counter(value for _, _, value in subscriber.said[1:]) == Counter(map(str, range(40)))
