"""The syndication broker of a running topology: sensors on CAN, clients of both generations, and failover."""

import asyncio
import struct
from collections import Counter
from contextlib import AsyncExitStack, closing
from pathlib import Path
from threading import Event

import pytest

from tests.helpers.ports import free_port

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.urls import split_url
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, Frame, pack, unpack
from bus.wire.pattern import Pattern
from devices.syndication.buses.intake import producer_id
from devices.syndication.service import Syndication
from devices.syndication.storage.database import Database, Stored
from tests.appliance.asking import asked as run_query
from tests.appliance.examples import relocated, rendezvous, running
from tests.appliance.pairs import PAIR, forwarding
from tests.devices.syndication.tcp_clients import TcpGuest, difference, published
from tests.devices.tap.tap_support import member
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from topologies.loading.loader import loads
from topologies.model import Topology

TEMP = Pattern("room-410", "temp")
METADATA = {"Bus": "hall", "Pattern": "room-410/temp", "Unit": "C", "Room": "410"}


def reading(value: float, pattern: Pattern = TEMP) -> bytes:
    return pack(PUB, pattern, struct.pack("<f", value))


def address(topology: Topology) -> str:
    """Return the address of the broker of a topology."""
    return next(topology.devices["broker"].listens()).url


async def asked(topology: Topology, query: str) -> list[str]:
    """Return what `buscoupler query` prints."""
    status, lines, errors = await run_query(address(topology), query)
    assert (status, errors) == (0, "")
    return lines


async def guest(topology: Topology, stack: AsyncExitStack, tagged: bool) -> TcpGuest:
    """Connect a client to the broker of a topology."""
    url = split_url(address(topology))
    return stack.enter_context(closing(await TcpGuest(tagged).connect((url.host, url.port))))


def until_set(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Let databases be read only from when the event is set: until then, the disk is slow."""
    event, rows = Event(), Database.rows

    def slow(database: Database, ran_s: float) -> tuple[list[Stored], int]:
        event.wait(5.0)
        return rows(database, ran_s)

    monkeypatch.setattr(Database, "rows", slow)
    return event


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
        assert await asked(topology, 'has Unit and Room = "410"') == [id]
        assert await asked(topology, "select distinct Room where has Unit") == ["12", "410"]


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
    async with forwarding(PAIR + BROKER.format(port=free_port())) as pair, AsyncExitStack() as stack:
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


PLANT = """
name: t
gateways: {{gw: }}
buses: {{hall: {{on: gw, listen: "tcp://127.0.0.1:{bus}"}}, yard: {{on: gw, listen: "tcp://127.0.0.1:{yard}"}}}}
devices:
  broker:
    on: gw
    syndication: tcp://127.0.0.1:{broker}
    producers: [{{bus: hall, pattern: room-410/temp, codec: struct, format: "<f", metadata: {{Room: "410"}}}}]
    queries: [{{query: has Room, bus: yard, pattern: found, codec: utf-8}}]
"""


@pytest.mark.parametrize("slow", [False, True])
async def test_a_reload_changes_what_patterns_are_and_forgets_what_the_file_said(
    slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLANT.format(bus=free_port(), yard=free_port(), broker=free_port())
    topology, before = loads(text), loads(text.replace("Room:", "Old: 1, Room:"))
    doors = [topology.buses[bus].listen[0].url for bus in ("hall", "yard")]
    last, appliance = appliance_of(before, "gw"), appliance_of(topology, "gw")
    last.open(asyncio.get_running_loop())
    with closing(last):
        async with member(doors[0]) as (hall, mouth), member(doors[1]) as (_, ear):
            hall.publish(from_payloads([reading(20)]), mouth)
            await until(lambda: ear.messages)
    read = until_set(monkeypatch) if slow else Event()
    appliance.open(asyncio.get_running_loop())
    with closing(appliance):
        async with member(doors[0]) as (hall, mouth), member(doors[1]) as (_, ear):

            async def publish(value: float) -> None:
                before = len(ear.messages)
                hall.publish(from_payloads([reading(value)]), mouth)
                await until(lambda: len(ear.messages) > before)

            await publish(21.5)
            changed = loads(
                text.replace("Room:", "Number: 4, Room:").replace("pattern: found", "pattern: seen")
            )
            assert [change.line() for change in reloaded(appliance, changed)] == [
                "changed device broker: producers, queries"
            ]
            await publish(22)
            renamed = loads(text.replace("Room:", "Place: x, Room:"))
            reloaded(appliance, renamed)
            await publish(23)
            read.set()
            (broker,) = appliance.parts["device broker"].services
            assert isinstance(broker, Syndication)
            await until(lambda: broker.memory.idle)
            assert await asked(topology, 'has Room and not has Number and not has Old and Place = "x"') != []
            found, seen = (Pattern(name, producer_id("hall", TEMP)) for name in ("found", "seen"))
            assert [unpack(one)[1:] for one in ear.messages] == [
                (found, b"21.5"),
                (seen, b"22.0"),
                (found, b"23.0"),
            ]
