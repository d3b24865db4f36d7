"""Registers of chips on i2c-dev: i2c-stub with blocks and words, and i2c-i801 with bytes."""

from asyncio import get_running_loop
from functools import partial

from smbus2 import SMBus

from bridges.media.i2c.medium import I2c
from bridges.media.i2c.spoken import I2cSpoken
from bridges.protocols.registers.protocol import ChipRegister, Registers
from bus.hub import Hub
from tests.bridges.protocols.spoken_support import message, told
from tests.helpers.peers import Ear, until
from tests.kernel.guest.i2c_adapters import EACH, NOBODY, STUB, TARGET, is_pci, number
from tests.kernel.guest.support import PATIENCE_S, open_bytes

NAMES = "block", "word", "limit", "set", "result", "nobody"


def table(target: int) -> Registers:
    rows = (
        ChipRegister(target=target, register=0x10, type="i16", scale=0.1, pattern=("block",)),
        ChipRegister(target=target, register=0x40, access="word", order="BA", pattern=("word",)),
        ChipRegister(target=target, register=0x30, pattern=("limit",), write=True, low=0, high=999),
        ChipRegister(target=NOBODY, register=0, pattern=("nobody",)),
    )
    return Registers(registers=rows, poll_ms=50)


@EACH
async def test_registers_are_read_and_written(name: str) -> None:
    bus, target = number(name), TARGET[name]
    with SMBus(bus) as chip:
        chip.write_byte_data(target, 0x10, 0xFF)
        chip.write_byte_data(target, 0x11, 0x38)
        if name == STUB:
            chip.write_word_data(target, 0x40, 0x1234)
        else:
            chip.write_byte_data(target, 0x40, 0x34)
            chip.write_byte_data(target, 0x41, 0x12)
        ear = Ear(hub := Hub())

        def seen() -> list[tuple[str, bytes]]:
            return told(ear.heard, *NAMES)

        adapter = partial(open_bytes, bus) if is_pci(bus) else None
        link = I2cSpoken(I2c(bus=bus), table(target), adapter=adapter)
        link.open(hub, get_running_loop())
        wanted = {("block", b"-20"), ("word", b"4660")}
        await until(lambda: wanted <= set(seen()), PATIENCE_S)
        ear.say(message("limit/set", b"258"))
        await until(lambda: ("limit/result", b"done") in seen() and ("limit", b"258") in seen(), PATIENCE_S)
        assert [chip.read_byte_data(target, at) for at in (0x30, 0x31)] == [1, 2]
        await until(lambda: link.condition == f"target {NOBODY:#04x} does not answer", PATIENCE_S)
        link.close()
        assert link.stats.balance() == 0
