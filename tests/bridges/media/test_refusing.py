"""Commands to devices that are asked end with one result each, also those that never come to the device."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from bridges.bridge import Bridge
from bridges.front.hub import FrontHub
from bridges.front.settings import Front, Limit
from bridges.media.i2c.medium import I2c
from bridges.media.i2c.memory import MemoryAdapter
from bridges.media.i2c.spoken import I2cSpoken
from bridges.media.shedding import Shed
from bridges.media.spoken import SpokenLink
from bridges.media.tcp.medium import Tcp
from bridges.media.tcp.spoken import TcpSpoken
from bridges.policy import Policy
from bridges.protocols.modbus.protocol import Modbus, Register
from bridges.protocols.registers.protocol import ChipRegister, Registers
from bus.hub import Hub
from bus.lateness import passing_late
from bus.renaming import Renaming
from bus.wire.frame import unpack
from bus.wire.pattern import Pattern
from tests.bridges.protocols.modbus.bench import Device
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import balanced, recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port

RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.02}
VALUE: dict[str, Any] = {"pattern": ("m",), "write": True, "low": 0, "high": 100, "read": False}
MODBUS = Modbus(registers=(Register(register=9, **VALUE),), age_ms=60_000)
CHIP = Registers(registers=(ChipRegister(target=0x48, register=1, **VALUE),), age_ms=60_000)


class Kind(NamedTuple):
    """A link to a device that may be there: `plug` and `unplug`."""

    link: SpokenLink | I2cSpoken
    plug: Callable[[], Any]
    unplug: Callable[[], Any]


async def over_tcp(shed: Shed | None) -> Kind:
    port, device, live = free_port(), Device(tcp=True), set[asyncio.StreamWriter]()
    servers = list[asyncio.Server]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        live.add(writer)
        while asked := await reader.read(256):
            for _, said in device.hear(asked):
                writer.write(said)
        writer.close()

    async def plug() -> None:
        servers.append(await asyncio.start_server(serve, "127.0.0.1", port))

    def unplug() -> None:
        while servers:
            servers.pop().close()
        while live:
            live.pop().transport.abort()

    options = Tcp(host="127.0.0.1", port=port, mode="dial")
    return Kind(TcpSpoken(options, MODBUS, shed, **RETRY), plug, unplug)


async def over_i2c(shed: Shed | None) -> Kind:
    adapter = MemoryAdapter([0x48], asyncio.get_running_loop().time)
    adapter.plugged = False

    async def plug() -> None:
        adapter.plugged = True

    def unplug() -> None:
        adapter.plugged = False

    link = I2cSpoken(I2c(bus=1), CHIP, shed, adapter=adapter.open, **RETRY)
    return Kind(link, plug, unplug)


KINDS = pytest.mark.parametrize("make", [over_tcp, over_i2c])


class Room:
    """A bridge from a bus, where commands come from and results go to, to a device."""

    def __init__(self, kind: Kind, front: Front = Front()) -> None:  # noqa: B008
        loop = asyncio.get_running_loop()
        self.bridge, self.kind, self.link = Bridge("b", 1, clock=loop.time), kind, kind.link
        above = ("hall",) if front else ()
        rules = Policy(allow_in=[(*above, "m")], allow_out=[(*above, "m", "set")])
        self.bus, side = self.bridge.side("bus"), self.bridge.side("device", rules)
        self.ear = recorder(self.bus)
        self.door: Hub = FrontHub(side, front) if front else side
        self.link.open(self.door, loop)

    async def up(self) -> None:
        await self.kind.plug()
        await until(lambda: self.link.pipe is not None)

    def command(self, *data: bytes, pattern: str = "m/set") -> None:
        say(self.bus, self.ear, *(message(pattern, one) for one in data))

    def results(self, pattern: str = "m/result") -> list[bytes]:
        frames = [unpack(one) for one in self.ear.messages]
        return [bytes(one.data) for one in frames if one.tokens == Pattern(*pattern.split("/"))]

    async def all(self, *wanted: bytes, pattern: str = "m/result") -> None:
        """Wait until commands have these results, and no more."""
        await until(lambda: len(self.results(pattern)) >= len(wanted))
        assert self.results(pattern) == list(wanted)

    @property
    def dropped(self) -> dict[str, int]:
        accounts = self.bridge.accounts()
        dropped = [item for one in accounts.values() for item in one.stats.dropped.items()]
        return {word: count for word, count in dropped if word != "pattern"}


@asynccontextmanager
async def room(make: Any, shed: Shed | None = None, front: Front = Front()) -> AsyncIterator[Room]:  # noqa: B008
    made = Room(await make(shed), front)
    try:
        yield made
    finally:
        made.link.close()
        made.kind.unplug()


@KINDS
async def test_a_command_to_a_device_that_is_not_there_is_refused(make: Any) -> None:
    async with room(make) as there:
        there.command(b"7", b"8")
        say(there.bus, there.ear, message("other/set", b"1"), message("m", b"1"))
        await there.all(*[b"refused: no device"] * 2)
        assert there.dropped == {"no device": 2}
        await there.up()
        there.command(b"9")
        await there.all(*[b"refused: no device"] * 2, b"done")
        assert balanced(there.bridge)


@KINDS
async def test_a_command_after_the_loss_of_the_device_is_refused(make: Any) -> None:
    async with room(make) as there:
        await there.up()
        there.command(b"1")
        await there.all(b"done")
        there.kind.unplug()
        there.command(b"2")  # what finds out on I2C that the adapter has gone
        await until(lambda: there.link.pipe is None)
        there.command(b"3")
        await until(lambda: len(there.results()) == 3)
        assert there.results()[1] in (b"not known: the wire was lost", b"refused: the wire was lost")
        assert there.results()[2] == b"refused: no device"


@KINDS
async def test_a_command_above_a_limit_is_refused_under_the_patterns_of_the_bridge(make: Any) -> None:
    front = Front(Renaming(prefix=("hall",)), limits=(Limit(("hall", "m"), 1.0, outward=True),))
    async with room(make, front=front) as there:
        await there.up()
        there.command(b"1", b"2", pattern="hall/m/set")
        await until(lambda: len(there.results("hall/m/result")) == 2)
        assert sorted(there.results("hall/m/result")) == [b"done", b"refused: limit"]
        assert there.dropped == {"limit": 1}
        assert balanced(there.bridge)


@KINDS
async def test_without_a_device_a_command_above_a_limit_has_one_result_too(make: Any) -> None:
    front = Front(Renaming(prefix=("hall",)), limits=(Limit(("hall", "m"), 1.0, outward=True),))
    async with room(make, front=front) as there:
        there.command(b"1", b"2", pattern="hall/m/set")
        await there.all(*[b"refused: no device"] * 2, pattern="hall/m/result")
        assert there.dropped == {"no device": 1, "limit": 1}


@KINDS
async def test_a_command_that_another_takes_the_place_of_and_one_that_waits_at_the_end_are_refused(
    make: Any,
) -> None:
    async with room(make, Shed("conflate", rate=0.01)) as there:
        await there.up()
        there.command(b"1", b"2", b"3")
        await until(lambda: len(there.results()) == 3)
        assert sorted(there.results()) == [b"done", b"refused: conflated", b"refused: conflated"]
        there.command(b"4")
        there.link.close()
        assert there.results()[-1] == b"refused: the wire was lost"
        assert len(there.results()) == 4


@KINDS
async def test_a_command_that_waits_too_long_for_a_rate_is_refused(make: Any) -> None:
    async with room(make, Shed("oldest", age_s=0.05, rate=10.0)) as there:
        await there.up()
        there.command(b"1", b"2")
        await until(lambda: len(there.results()) == 2)
        assert sorted(there.results()) == [b"done", b"refused: aged out"]
        assert there.dropped == {"aged out": 1}


@KINDS
@pytest.mark.parametrize("policy", ["newest", "oldest"])
async def test_a_command_that_finds_no_room_is_refused(make: Any, policy: Any) -> None:
    async with room(make, Shed(policy, queue_bytes=4096, rate=0.01)) as there:
        await there.up()
        there.command(b"1")
        await there.all(b"done")
        count = 4096 // len(message("m/set", b"2")) + 3
        there.command(*[b"2"] * count)
        await there.all(b"done", *[b"refused: shed"] * 3)
        assert there.dropped == {"shed": 3}


@KINDS
async def test_a_command_that_is_late_is_refused(make: Any) -> None:
    async with room(make) as there:
        await there.up()
        with passing_late(5000):
            there.command(b"1")
        await there.all(b"refused: late")
        assert there.dropped == {"late": 1}


@KINDS
async def test_what_is_purged_is_refused_with_its_reason(make: Any) -> None:
    async with room(make, Shed(rate=0.01)) as there:
        await there.up()
        there.command(b"1")
        await there.all(b"done")
        there.command(b"2")
        there.bridge.sides[1].purge("memory")
        await there.all(b"done", b"refused: memory")


async def test_too_many_results_at_once_are_counted() -> None:
    async with room(over_tcp) as there:
        there.command(*[b"1"] * 1030)
        await there.all(*[b"refused: no device"] * 1024)
        assert there.link.stats.rejected == {"results full": 6}
