"""Chips on an adapter in memory, read and written by a link, in a thread as on hardware and on the loop."""

import contextlib
from asyncio import get_running_loop
from collections.abc import Iterator

import pytest

from bridges.media.i2c.medium import I2c
from bridges.media.i2c.memory import MemoryAdapter
from bridges.media.i2c.spoken import I2cSpoken
from bridges.media.shedding import Shed
from bridges.protocols.registers.protocol import ChipRegister, Registers
from bridges.protocols.registers.translator import RegistersTranslator
from bus.hub import Hub
from tests.bridges.media.i2c.i2c_support import FaultyAdapter
from tests.bridges.protocols.spoken_support import message, told
from tests.helpers.peers import Ear, until
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RegistersTranslator.__module__ + ".ANSWER_S", 0.01)


TABLE = Registers(
    registers=(
        ChipRegister(target=0x48, register=0x10, pattern=("a",), poll_ms=10),
        ChipRegister(target=0x48, register=0x12, pattern=("b",), poll_ms=10, access="word"),
        ChipRegister(target=0x48, register=0x14, pattern=("c",), write=True, low=0, high=99, read=False),
        ChipRegister(target=0x50, register=0, pattern=("d",), poll_ms=10),
    )
)


@contextlib.contextmanager
def opened(memory: MemoryAdapter, shed: Shed | None = None) -> Iterator[tuple[I2cSpoken, Ear]]:
    hub = Hub()
    ear = Ear(hub)
    link = I2cSpoken(I2c(bus=1), TABLE, shed, adapter=memory.open, retry_min_s=0.005, retry_max_s=0.02)
    link.open(hub, get_running_loop())
    try:
        yield link, ear
    finally:
        link.close()
        assert link.stats.balance() == 0
        assert link.stats.queued == 0


def last(ear: Ear) -> dict[str, bytes]:
    return dict(told(ear.heard, "a", "b", "c", "d", "set", "result"))


async def test_registers_are_read_and_written_and_an_absent_chip_is_a_state(blocks: bool) -> None:
    memory = FaultyAdapter([0x48], blocks=blocks)
    memory.targets[0x48].memory[0x10:0x14] = bytes([1, 2, 3, 4])
    with opened(memory) as (link, ear):
        await until(lambda: last(ear) == {"a": b"258", "b": b"772"})
        ear.say(message("c/set", b"7"), message("c/set", b"100"))
        await until(lambda: told(ear.heard, "c", "result")[-1][0] == "c/result" or "c/result" in last(ear))
        await until(lambda: bytes(memory.targets[0x48].memory[0x14:0x16]) == b"\0\7")
        await until(lambda: link.condition == "target 0x50 does not answer")
        assert link.state == "up"
        results = [data for shown, data in told(ear.heard, "c", "result") if shown == "c/result"]
        assert sorted(results) == [b"done", b"refused: 100 is above 99"]


async def test_a_command_that_waits_for_the_rate_of_its_side_needs_no_other_to_go_on(blocks: bool) -> None:
    with opened(MemoryAdapter([0x48], blocks=blocks), Shed(rate=200)) as (_, ear):
        await until(lambda: "a" in last(ear))
        ear.say(*(message("c/set", b"%d" % number) for number in range(3)))
        await until(lambda: [shown for shown, _ in told(ear.heard, "c", "result")].count("c/result") == 3)


async def test_an_adapter_that_goes_is_opened_again(blocks: bool) -> None:
    memory = MemoryAdapter([0x48], blocks=blocks)
    with opened(memory) as (link, ear):
        await until(lambda: "a" in last(ear))
        memory.plugged = False
        await until(lambda: link.losses == 1 and link.state == "waiting")
        memory.plugged = True
        ear.heard.clear()
        await until(lambda: "a" in last(ear))


def test_targets_are_of_tmq_alone() -> None:
    top = "name: t\ngateways: {gw: {}}\nbuses: {main: {on: gw}}\nbridges:\n"
    text = top + "  b: {on: gw, join: [{bus: main}, {%s}]}\n"
    with pytest.raises(InvalidTopology, match="i2c needs targets"):
        loads(text % "i2c: {bus: 1}")
    table = "protocol: {registers: {registers: [{target: 0x48, register: 0, pattern: a}]}}"
    with pytest.raises(InvalidTopology, match="leave targets out"):
        loads(text % f"i2c: {{bus: 1, targets: [0x42]}}, {table}")
    assert loads(text % f"i2c: {{bus: 1}}, {table}")


async def test_a_tap_of_the_wire_hears_requests_and_what_was_read(blocks: bool) -> None:
    memory, came, went = FaultyAdapter([0x48], blocks=blocks), set[bytes](), set[bytes]()
    memory.targets[0x48].memory[0x10:0x14] = bytes([1, 2, 3, 4])
    with opened(memory) as (link, ear):
        link.wire_tap.tap(lambda items, is_sent, _: (went if is_sent else came).update(items))
        await until(lambda: "a" in last(ear))
        ear.say(message("c/set", b"7"))
        await until(lambda: b"\x48\x14\0\7" in went)
        await until(lambda: {b"\x48\x10\1\2", b"\x48\x12\3\4"} <= came)
        await until(lambda: {b"\x48\x10", b"\x48\x12", b"\x50\0"} <= went)
        assert not any(item[0] == 0x50 for item in came)
