"""I2C adapters: what is needed of one, opening the kernel's, and what its errors mean (docs/wire/i2c.md)."""

import errno
import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from bus.errors import LinkError


class Adapter(Protocol):
    """Blocking register access, as smbus2 names it: at most 32 bytes at a time; OSError where it fails.

    Derive from it to get the defaults. `blocks = False` is for one that returns at once (in memory,
    simulated): it is then called on the event loop, by its clock.
    """

    blocks: bool = True

    def present(self) -> bool:
        """Return False once the adapter has gone from the machine."""
        return True

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]: ...
    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None: ...
    def close(self) -> None: ...


Trouble = Literal["", "nack", "bus", "gone"]

_NACK = {errno.ENXIO, errno.EREMOTEIO, errno.ENODEV}
_GONE = {errno.EBADF, errno.ENOENT, errno.ESHUTDOWN}

_BLOCKS = 0x0C000000
"""I2C_FUNC_SMBUS_I2C_BLOCK of <linux/i2c.h>: reading and writing."""
_BYTES = 0x00180000
"""I2C_FUNC_SMBUS_BYTE_DATA."""


def trouble(error: Exception, adapter: Adapter) -> Trouble:
    """`nack`: nobody at that address; `gone`: the adapter is no more; `bus`: all else, a stuck bus too."""
    number = getattr(error, "errno", None)
    if number in _GONE or not adapter.present():
        return "gone"
    return "nack" if number in _NACK else "bus"


def open_adapter(bus: int) -> Adapter:
    """`/dev/i2c-<bus>` through smbus2. Raises OSError, and LinkError where there is no register access."""
    from smbus2 import SMBus

    device = SMBus(bus)
    functions = int(device.funcs)
    if functions & _BLOCKS == _BLOCKS:
        return KernelAdapter(device, bus)
    if functions & _BYTES == _BYTES:
        return ByteAdapter(device, bus)
    device.close()
    raise LinkError(f"i2c:{bus}: the adapter can neither do I2C block nor byte data transfers")


class KernelAdapter(Adapter):
    """`/dev/i2c-N`, which has gone when its name has."""

    def __init__(self, device: Any, bus: int) -> None:
        self._device, self._path = device, f"/dev/i2c-{bus}"

    def present(self) -> bool:
        return os.path.exists(self._path)

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        read: list[int] = self._device.read_i2c_block_data(i2c_addr, register, length)
        return read

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        self._device.write_i2c_block_data(i2c_addr, register, data)

    def close(self) -> None:
        self._device.close()


class ByteAdapter(KernelAdapter):
    """For controllers that know no block transfer: byte by byte, in the order of the registers.

    The mailbox allows it: ctl is the last byte that is written and the first that is read.
    """

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        return [self._device.read_byte_data(i2c_addr, register + offset) for offset in range(length)]

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        for offset, byte in enumerate(data):
            self._device.write_byte_data(i2c_addr, register + offset, byte)
