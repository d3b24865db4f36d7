"""The kernel's adapters and GPIO lines, as far as tests work without hardware."""

import errno
import fcntl
import os
import struct
import sys
from types import ModuleType
from typing import Any

import pytest

from bridges.media.i2c.adapter import ByteAdapter, KernelAdapter, open_adapter, trouble
from bridges.media.i2c.alert import GpioAlert
from bridges.media.i2c.mailbox_controller import Controller
from bridges.media.i2c.mailbox_target import Target
from bridges.media.i2c.medium import parse_alert
from bridges.media.i2c.memory import MemoryAdapter
from bridges.media.i2c.poll import perform
from bus.errors import LinkError
from tests.bridges.support import MESSAGE

BLOCKS, BYTES, FULL = 0x0C000000, 0x00180000, 0x0EFF0009


class Device:
    """The object that smbus2 has for `/dev/i2c-N`, on a target in memory."""

    def __init__(self, functions: int) -> None:
        self.funcs, self.target, self.closed = functions, Target(), False
        self.heard: list[bytes] = []
        self.calls: list[str] = []

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        self.calls.append("block")
        return list(self.target.memory[register : register + length])

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: list[int]) -> None:
        self.calls.append("block")
        self.heard += self.target.written(0.0, register, bytes(data))

    def read_byte_data(self, i2c_addr: int, register: int) -> int:
        self.calls.append("byte")
        return self.target.memory[register]

    def write_byte_data(self, i2c_addr: int, register: int, value: int) -> None:
        self.calls.append("byte")
        self.heard += self.target.written(0.0, register, bytes((value,)))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def smbus2(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for the library; `devices` has the device of each bus number."""
    module: Any = ModuleType("smbus2")
    module.devices = {}
    module.SMBus = lambda bus: module.devices[bus]
    monkeypatch.setitem(sys.modules, "smbus2", module)
    return module


@pytest.mark.parametrize(
    ("functions", "kind", "calls"),
    [(FULL, KernelAdapter, "block"), (BLOCKS, KernelAdapter, "block"), (BYTES, ByteAdapter, "byte")],
)
def test_a_message_each_way_by_what_the_adapter_can_do(
    smbus2: Any, functions: int, kind: type, calls: str
) -> None:
    device = smbus2.devices[3] = Device(functions)
    adapter, controller, now = open_adapter(3), Controller(), 0.0
    assert type(adapter) is kind
    device.target.send(MESSAGE)
    found: list[bytes] = []
    while not (found and device.heard):
        now += 0.01
        assert now < 5.0, "it never came true"
        if controller.ready:
            controller.send(now, MESSAGE)
        if access := controller.next(now):
            message = controller.done(now, perform(adapter, 0x42, access))
            found += [] if message is None else [message]
    assert found == device.heard == [MESSAGE]
    assert set(device.calls) == {calls}
    adapter.close()
    assert device.closed


def test_an_adapter_that_is_not_there_is_told_with_what_to_do() -> None:
    pytest.importorskip("smbus2")
    with pytest.raises(
        OSError, match=r"^/dev/i2c-999: No such file or directory: load its driver \(modprobe"
    ):
        open_adapter(999)


def test_an_adapter_without_register_access_is_refused_and_closed(smbus2: Any) -> None:
    device = smbus2.devices[3] = Device(0x00010000)
    with pytest.raises(LinkError, match="neither"):
        open_adapter(3)
    assert device.closed


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.ENXIO, "nack"),
        (errno.EREMOTEIO, "nack"),
        (errno.ENODEV, "nack"),
        (errno.EIO, "bus"),
        (errno.ETIMEDOUT, "bus"),
        (errno.EAGAIN, "bus"),
        (errno.EBADF, "gone"),
        (errno.ESHUTDOWN, "gone"),
    ],
)
def test_what_errors_mean(number: int, word: str) -> None:
    memory = MemoryAdapter([])
    assert trouble(OSError(number, ""), memory) == word
    memory.plugged = False
    assert trouble(OSError(number, ""), memory) == "gone"


def test_an_error_without_a_number_is_trouble_of_the_bus() -> None:
    assert trouble(RuntimeError("?"), MemoryAdapter([])) == "bus"


class Gpio:
    """The kernel's side of `<linux/gpio.h>`, version 2: one chip without pull-ups, its events in a pipe."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pulls_up: bool) -> None:
        self.lines, self.events = os.pipe()
        self.pulls_up, self.value = pulls_up, 0
        self.requests: list[bytes] = []
        monkeypatch.setattr(fcntl, "ioctl", self.ioctl)

    def ioctl(self, fd: int, request: int, argument: bytearray) -> int:
        if request == 0xC250B407:
            self.requests.append(bytes(argument))
            if struct.unpack_from("=Q", argument, 288)[0] & 1 << 8 and not self.pulls_up:
                raise OSError(errno.EINVAL, "no bias")
            struct.pack_into("=i", argument, 588, self.lines)
            return 0
        assert (fd, request) == (self.lines, 0xC010B40E)
        assert struct.unpack("=QQ", argument)[1] == 1
        struct.pack_into("=Q", argument, 0, self.value)
        return 0


@pytest.mark.parametrize("pulls_up", [True, False])
def test_gpio_line(monkeypatch: pytest.MonkeyPatch, pulls_up: bool) -> None:
    gpio = Gpio(monkeypatch, pulls_up)
    alert = GpioAlert("/dev/null", 17)
    request = gpio.requests[-1]
    assert (len(gpio.requests), len(request)) == (1 if pulls_up else 2, 592)
    assert struct.unpack_from("=I", request)[0] == 17
    assert request[256:266] == b"buscoupler"
    assert struct.unpack_from("=Q", request, 288)[0] == (0x136 if pulls_up else 0x36)
    assert struct.unpack_from("=II", request, 560) == (1, 0)
    assert not alert.is_asserted()
    os.write(gpio.events, bytes(48 * 20))
    gpio.value = 1
    assert alert.is_asserted()
    with pytest.raises(BlockingIOError):
        os.read(alert.fileno(), 1)  # all events have been read
    alert.close()
    alert.close()
    os.close(gpio.events)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "17",
        "/dev/gpiochip0",
        "/dev/gpiochip0:",
        "gpiochip0:17",
        "/dev/gpiochip0:-1",
        f"/dev/gpiochip0:{'9' * 5000}",
    ],
)
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="/dev/gpiochip0:17"):
        parse_alert(text)


def test_a_line() -> None:
    assert parse_alert("/dev/gpiochip0:17") == ("/dev/gpiochip0", 17)
