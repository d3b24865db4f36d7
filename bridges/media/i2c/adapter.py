"""I2C adapters: their interface, those of the kernel, and the meaning of errors (docs/wire/i2c.md)."""

import errno
import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from bridges.media.i2c.medium import ABSENT
from bus.errors import LinkError, told


class Adapter(Protocol):
    """An I2C adapter with the method names of smbus2: at most 32 bytes in a call; raises OSError on failure.

    Derive from it to get the defaults. Set `blocks = False` if all calls return at once (in memory,
    simulated): they are then made on the event loop, with the loop's clock, and not in a thread.
    """

    blocks: bool = True

    def present(self) -> bool:
        """Return whether the machine still has the adapter."""
        return True

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]: ...
    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None: ...

    def read_word_data(self, i2c_addr: int, register: int) -> int:
        """Return an SMBus word, whose low byte comes first on the wire."""
        return int.from_bytes(bytes(self.read_i2c_block_data(i2c_addr, register, 2)), "little")

    def write_word_data(self, i2c_addr: int, register: int, value: int) -> None:
        """Write an SMBus word."""
        self.write_i2c_block_data(i2c_addr, register, value.to_bytes(2, "little"))

    def close(self) -> None: ...


Trouble = Literal["", "nack", "bus", "gone"]

_NACK = {errno.ENXIO, errno.EREMOTEIO, errno.ENODEV}
_GONE = {errno.EBADF, errno.ENOENT, errno.ESHUTDOWN}

_BLOCKS = 0x0C000000
"""I2C_FUNC_SMBUS_I2C_BLOCK of <linux/i2c.h>: the adapter reads and writes blocks."""
_BYTES = 0x00180000
"""I2C_FUNC_SMBUS_BYTE_DATA of <linux/i2c.h>: the adapter reads and writes single registers."""


def trouble(error: Exception, adapter: Adapter) -> Trouble:
    """Classify an error.

    `nack`: no target at that address; `gone`: the adapter was removed; `bus`: any other, also a stuck bus.
    """
    number = getattr(error, "errno", None)
    if number in _GONE or not adapter.present():
        return "gone"
    return "nack" if number in _NACK else "bus"


def open_adapter(bus: int) -> Adapter:
    """Open `/dev/i2c-<bus>` with smbus2. Raises OSError, or LinkError if it cannot access registers."""
    from smbus2 import SMBus

    try:
        device = SMBus(bus)
    except FileNotFoundError as error:
        raise OSError(f"{told(error)}: {ABSENT}") from error
    functions = int(device.funcs)
    if functions & _BLOCKS == _BLOCKS:
        return KernelAdapter(device, bus)
    if functions & _BYTES == _BYTES:
        return ByteAdapter(device, bus)
    device.close()
    raise LinkError(f"i2c:{bus}: the adapter supports neither I2C block nor byte data transfers")


class KernelAdapter(Adapter):
    """An adapter on `/dev/i2c-N`. It is present as long as that path exists."""

    def __init__(self, device: Any, bus: int) -> None:
        self._device, self._path = device, f"/dev/i2c-{bus}"

    def present(self) -> bool:
        return os.path.exists(self._path)

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        read: list[int] = self._device.read_i2c_block_data(i2c_addr, register, length)
        return read

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        self._device.write_i2c_block_data(i2c_addr, register, data)

    def read_word_data(self, i2c_addr: int, register: int) -> int:
        return int(self._device.read_word_data(i2c_addr, register))

    def write_word_data(self, i2c_addr: int, register: int, value: int) -> None:
        self._device.write_word_data(i2c_addr, register, value)

    def close(self) -> None:
        self._device.close()


class ByteAdapter(KernelAdapter):
    """An adapter without block transfers: it accesses register after register, one byte at a time.

    The mailbox allows this, because ctl is the last byte of a write and the first byte of a read.
    """

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        return [self._device.read_byte_data(i2c_addr, register + offset) for offset in range(length)]

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        for offset, byte in enumerate(data):
            self._device.write_byte_data(i2c_addr, register + offset, byte)
