"""The I2C link on i2c-dev: i2c-stub with blocks, and a PCI controller (i2c-i801) and EEPROM with bytes."""

import subprocess
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bridges.media.i2c.link import I2cLink
from bridges.media.i2c.medium import I2c
from bridges.simulate.wire import divide
from bus.hub import Hub
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.peers import until
from tests.kernel.guest.i2c_adapters import EACH, NOBODY, PCI, STUB, TARGET, is_pci, number
from tests.kernel.guest.support import PATIENCE_S, open_bytes, python

DRIVER = Path("/sys/bus/pci/drivers/i801_smbus")


@contextmanager
def i2c_link(hub: Hub, bus: int, *targets: int, **options: Any) -> Iterator[I2cLink]:
    if is_pci(bus):
        options["adapter"] = partial(open_bytes, bus)
    options = {"retry_min_s": 0.01, "retry_max_s": 0.1, "queue_bytes": 1 << 20} | options
    fields, rest = divide(I2c, options)
    link = I2cLink(I2c(bus=bus, targets=targets, **fields), **rest)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


@EACH
async def test_frames_are_echoed_intact(name: str) -> None:
    hub, bus, address = Hub(), number(name), TARGET[name]
    heard = recorder(hub)
    messages = [frame(size) for size in (4, 20, 25, 26, 27, 60, 255)]
    async with python("i2c_target", str(bus), str(address), *(["bytes"] if name == PCI else [])):
        with i2c_link(hub, bus, address) as link:
            await until(lambda: link.targets[address].state == "up", PATIENCE_S)
            say(hub, heard, *messages)
            await until(lambda: len(heard.messages) == len(messages), PATIENCE_S)
            assert heard.messages == messages
            await until(lambda: link.stats.queued == 0, PATIENCE_S)
            assert link.stats.sent == len(messages)
            assert link.stats.balance() == 0
            assert link.stats.rejected == {}


@EACH
async def test_an_address_where_nobody_is_is_a_state(name: str) -> None:
    hub, bus = Hub(), number(name)
    with i2c_link(hub, bus, NOBODY) as link:
        await until(lambda: link.targets[NOBODY].state == "absent", PATIENCE_S)
        say(hub, None, MESSAGE)
        assert link.stats.balance() == 0
        assert link.state == "up"
        assert link.losses == 0


def bind(action: str, device: str) -> None:
    (DRIVER / action).write_text(device)


async def test_an_adapter_taken_away_and_brought_back() -> None:
    hub, bus, address = Hub(), number(PCI), TARGET[PCI]
    heard = recorder(hub)
    device = next(path.name for path in DRIVER.iterdir() if path.name.startswith("0000:"))
    async with python("i2c_target", str(bus), str(address), "bytes"):
        with i2c_link(hub, bus, address) as link:
            await until(lambda: link.targets[address].state == "up", PATIENCE_S)
            # in a thread, because the kernel waits until all have closed the adapter
            await get_running_loop().run_in_executor(None, bind, "unbind", device)
            await until(lambda: link.state == "waiting", PATIENCE_S)
            say(hub, heard, MESSAGE)
            assert link.stats.balance() == 0
            bind("bind", device)
            await until(lambda: link.targets[address].state == "up", PATIENCE_S)
            say(hub, heard, frame(200))
            await until(lambda: frame(200) in heard.messages, PATIENCE_S)
            assert link.losses == 1
            assert link.stats.balance() == 0


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=PATIENCE_S)


async def test_a_module_taken_out_and_loaded_again() -> None:
    """The link waits while the module is removed, and closes first: i2c-dev keeps a module that is in use."""
    hub, bus, address = Hub(), number(STUB), TARGET[STUB]
    heard = recorder(hub)
    run("rmmod", "i2c-stub")
    with i2c_link(hub, bus, address) as link:
        await until(lambda: link.state == "waiting", PATIENCE_S)
        run("modprobe", "i2c-stub", f"chip_addr={address}")
        assert number(STUB) == bus
        async with python("i2c_target", str(bus), str(address)):
            await until(lambda: link.targets[address].state == "up", PATIENCE_S)
            say(hub, heard, MESSAGE)
            await until(lambda: heard.messages == [MESSAGE], PATIENCE_S)
