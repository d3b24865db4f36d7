"""The broker on its buses: frames are publications, and what a query matches are frames."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.hub import Hub
from bus.serving.limits import Limits
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, SUB, Frame, pack, unpack
from bus.wire.pattern import Pattern, token
from devices.service import BusPort
from devices.syndication.bounds import Bounds
from devices.syndication.buses.bus_adapter import INBOX_BYTES, Buses
from devices.syndication.buses.intake import producer_id
from devices.syndication.buses.rules import ProducerRule, QueryRule
from devices.syndication.client import Client
from devices.syndication.device import SyndicationSpec
from devices.syndication.exchange import Exchange
from devices.syndication.service import Syndication
from devices.syndication.wire.messages import Publication
from tests.bridges.support import RecordingPipe, recorder
from tests.devices.syndication.tcp_clients import Home, difference, published
from tests.helpers.peers import until

TEMP = Pattern("sensor", "temp")
ID = producer_id("hall", TEMP)
METADATA = {"Bus": "hall", "Pattern": "sensor/temp", "Unit": "C", "Room": "410"}
SENSOR = ProducerRule(
    bus="hall", pattern=("sensor", "temp"), codec="utf-8", metadata={"Unit": "C", "Room": "410"}
)


def found(**settings: Any) -> QueryRule:
    return QueryRule(
        **{"query": "has Unit", "bus": "hall", "pattern": ("found",), "codec": "json"} | settings
    )


class Plant(Home):
    """A broker on buses, each with a peer that says and hears frames."""

    def __init__(self, service: Syndication, peers: dict[str, RecordingPipe], hubs: dict[str, Hub]) -> None:
        super().__init__(service)
        self.peers, self.hubs = peers, hubs

    def say(self, *frames: bytes, bus: str = "hall") -> None:
        self.hubs[bus].publish(from_payloads(frames), self.peers[bus])

    def port(self, bus: str = "hall") -> BusPort:
        return self.service.ports[self.service.spec.joins.index(bus)]

    def heard(self, bus: str = "hall") -> list[Frame]:
        return [unpack(one) for one in self.peers[bus].messages]


@asynccontextmanager
async def plant(
    *rules: ProducerRule | QueryRule,
    bounds: Bounds = Bounds(),  # noqa: B008 (frozen)
    database: Path | None = None,
) -> AsyncIterator[Plant]:
    spec = SyndicationSpec(
        on="gw",
        syndication=("tcp://127.0.0.1:0",),
        producers=tuple(rule for rule in rules if isinstance(rule, ProducerRule)),
        queries=tuple(rule for rule in rules if isinstance(rule, QueryRule)),
        database=str(database) if database else None,
    )
    service = Syndication("s", spec, bounds, Limits())
    hubs = {bus: Hub(bus) for bus in spec.joins}
    peers = {bus: recorder(hub) for bus, hub in hubs.items()}
    for hub in hubs.values():
        service.open(hub, asyncio.get_running_loop())
    service.start(asyncio.get_running_loop())
    made = Plant(service, peers, hubs)
    try:
        yield made
    finally:
        made.close()


def reading(text: str, pattern: Pattern = TEMP, kind: int = PUB) -> bytes:
    return pack(kind, pattern, text.encode())


@pytest.mark.parametrize("tagged", [False, True])
async def test_a_sensor_of_a_bus_is_found_by_a_query(tagged: bool) -> None:
    async with plant(SENSOR) as here:
        guest = await here.guest(tagged)
        await guest.subscribe('has Unit and Room = "410"')
        await guest.told(difference())
        here.say(reading("21.5"), reading("22"), reading("9", Pattern("motor")))
        first, second = published(ID, METADATA, "21.5", tagged), published(ID, {}, "22", tagged)
        await guest.told(difference([ID]), first, second)
        late = await here.guest(tagged)
        await late.subscribe("has Unit")
        await late.told(difference([ID]))
        assert here.port().stats.rejected == {"pattern": 1}


async def test_what_a_query_matches_is_said_on_its_bus_and_nowhere_else() -> None:
    async with plant(SENSOR, found(bus="yard"), found(query="Room = 'x'", pattern=("none",))) as here:
        guest = await here.guest()
        await guest.publish("a1", {"Unit": "K"}, [1, {"x": 2}])
        await guest.publish("a2", {"Room": "7"}, 1)
        await until(lambda: len(here.heard("yard")) == 1)
        here.say(reading("21.5"))
        await until(lambda: len(here.heard("yard")) == 2)
        assert here.heard("yard") == [
            Frame(PUB, (token("found"), token("a1")), b'[1,{"x":2}]'),
            Frame(PUB, (token("found"), token(ID)), b'"21.5"'),
        ]
        assert here.heard() == []


async def test_data_without_a_meaning_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with plant(SENSOR, found(codec="struct", format="<f")) as here:
        with caplog.at_level(logging.WARNING):
            here.say(pack(PUB, TEMP, b"\xff"), pack(PUB, TEMP, b"\xfe"), b"no frame", reading("1", kind=SUB))
            here.say(reading("21.5"))
            counts = {"no utf-8": 2, "no frame": 1, "type": 1, "no struct": 1}
            await until(lambda: here.port().stats.rejected == counts)
        assert [record.getMessage() for record in caplog.records] == [
            "s: refused from bus hall sensor/temp: no utf-8",
            "s: refused from bus hall found: no struct",
        ]
        assert here.port().stats.balance() == 0


async def test_a_producer_that_is_idle_leaves_the_sets_and_comes_back() -> None:
    now_s = 0.0
    async with plant(SENSOR) as here:
        here.service.buses.stop()
        exchange, ports = here.server.exchange, {"hall": here.port()}
        spec = SyndicationSpec(on="gw", syndication=("tcp://127.0.0.1:0",), producers=(SENSOR,))
        buses = Buses("s", spec, exchange, lambda: now_s, 0.01)
        buses.start(asyncio.get_running_loop(), ports)
        guest = await here.guest()
        await guest.subscribe("has Unit")
        await guest.told(difference())
        buses.heard(here.port(), [reading("1")])
        await guest.told(difference([ID]), [ID, METADATA, "1"])
        now_s += SENSOR.idle_s
        await guest.told(difference(gone=[ID]))
        buses.heard(here.port(), [reading("2")])
        await guest.told(difference([ID]), [ID, METADATA, "2"])
        buses.stop()
        await guest.told(difference(gone=[ID]))


async def test_what_the_file_no_longer_says_is_deleted() -> None:
    async with plant(SENSOR) as here:
        here.server.exchange.book.restore(ID, METADATA | {"Old": 1, "Room": "12"}, 0)
        guest = await here.guest()
        await guest.subscribe("has Unit and not has Old")
        await guest.told(difference())
        here.say(reading("1"))
        await guest.told(difference([ID]), [ID, METADATA | {"Old": None}, "1"])


async def test_nor_does_it_come_back_from_the_database(tmp_path: Path) -> None:
    old = replace(SENSOR, metadata={"Unit": "C", "Room": "410", "Old": 1})
    async with plant(old, database=tmp_path / "db") as here:
        here.say(reading("1"))
        guest = await here.guest()
        await guest.subscribe("has Old")
        await guest.told(difference([ID]))
    async with plant(SENSOR, database=tmp_path / "db") as here:
        here.say(reading("2"))
        guest = await here.guest()
        await guest.subscribe("")  # served when the file has been read
        await guest.told(difference([ID]))
        found = here.server.exchange.book.producers.find(ID)
        assert found is not None
        assert found.metadata == METADATA


async def test_a_rule_hears_its_own_bus_only() -> None:
    yard = replace(SENSOR, bus="yard", codec="json")
    async with plant(SENSOR, yard) as here:
        guest = await here.guest()
        await guest.subscribe("")
        await guest.told(difference())
        here.say(reading("1"), bus="yard")
        here.say(reading("1"))
        there = producer_id("yard", TEMP)
        await guest.told(
            difference([there]), [there, METADATA | {"Bus": "yard"}, 1], difference([ID]), [ID, METADATA, "1"]
        )


async def test_a_flood_of_producers_is_taken_in_turns_within_a_bound() -> None:
    count, rule = 2048, replace(SENSOR, producers=2048)
    async with plant(rule, bounds=Bounds(speakers_per_host=2048)) as here:
        here.say(*(reading("1", Pattern(*TEMP, number)) for number in range(count)))
        assert here.server.exchange.book.counts["producers"] < count
        await until(lambda: here.server.exchange.book.counts["producers"] == count)
        long = pack(PUB, TEMP, bytes(2048))
        here.say(*[long] * (INBOX_BYTES // 2048), reading("1", Pattern("motor")))
        counts = here.port().stats.rejected
        assert (counts["queue full"] > 0, counts["pattern"]) == (True, 1)
        await until(lambda: counts["queue full"] + counts["producers of one rule"] == INBOX_BYTES // 2048)
        assert here.port().stats.balance() == 0


async def test_a_defect_costs_one_frame_and_the_next_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise RuntimeError("a defect")

    async with plant(SENSOR) as here:
        guest = await here.guest()
        await guest.subscribe("")
        await guest.told(difference())
        with monkeypatch.context() as patch:
            patch.setattr(Exchange, "publish", raises)
            here.say(reading("1"))
        assert here.port().stats.dropped == {"failed": 1}
        here.say(reading("2"))
        await guest.told(difference([ID]), [ID, METADATA, "2"])


async def test_a_defect_in_a_later_turn_does_not_end_the_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, defects, publish = list[bool](), list[Any](), Exchange.publish

    def raises(exchange: Exchange, client: Client, publication: Publication, whole: bool) -> bool:
        taken.append(publish(exchange, client, publication, whole))
        if len(taken) == 4000:
            raise RuntimeError("a defect")
        return taken[-1]

    monkeypatch.setattr(Exchange, "publish", raises)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: defects.append(context))
    async with plant(SENSOR) as here:
        here.say(*[reading("1")] * 5000)
        await until(lambda: bool(defects))
        here.say(reading("2"))
        await until(lambda: len(taken) == 5001)


async def test_what_waits_when_the_broker_stops_is_counted() -> None:
    async with plant(SENSOR) as here:
        here.say(*[reading("1")] * 5000)
        here.service.stop()
        assert 0 < here.port().stats.rejected["closed"] < 5000


async def test_one_that_is_refused_is_taken_when_there_is_room() -> None:
    async with plant(SENSOR, bounds=Bounds(producers=1)) as here:
        other, guest = await here.guest(), await here.guest()
        await guest.subscribe("")
        await guest.told(difference())
        await other.publish("a", {}, 1)
        await guest.told(difference(["a"]), ["a", {}, 1])
        here.say(reading("1"))
        await until(lambda: here.server.stats.rejected == {"producers full": 1})
        other.close()
        await guest.told(difference(gone=["a"]))
        here.say(reading("2"))
        await guest.told(difference([ID]), [ID, METADATA, "2"])


async def test_what_does_not_fit_the_queue_to_a_bus_is_counted() -> None:
    async with plant(found(codec="raw")) as here:
        guest = await here.guest()
        half = bytes(1 << 10)
        packed = msgpack.packb(["a", {"Unit": 1}, half]) + msgpack.packb(["a", {}, half]) * 20
        here.service.queue_bytes = 1 << 12
        await guest.say(packed)
        counts = here.port().stats.rejected
        await until(lambda: len(here.heard()) + counts.get("queue full", 0) == 21)
        assert [*counts] == ["queue full"]


async def test_a_query_that_is_refused_is_a_fault() -> None:
    async with plant(found(), found(query="has Room"), bounds=Bounds(queries=1)) as here:
        assert here.service.fault == "queries full"
