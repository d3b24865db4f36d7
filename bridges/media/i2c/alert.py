"""The alert line of an I2C bus: one active-low, open-drain wire for all targets (docs/wire/i2c.md)."""

import contextlib
import fcntl
import os
from struct import Struct
from typing import Protocol

# from <linux/gpio.h>, version 2 of the interface of the character device
_GET_LINE = 0xC250B407
_GET_VALUES = 0xC010B40E
_LINE_REQUEST = Struct("=64I32s QI20x240x II20xi")
_VALUES = Struct("=QQ")
_ACTIVE_LOW, _INPUT, _RISING, _FALLING, _PULL_UP = 1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 8
_EVENTS_BYTES = 48 * 16


class Alert(Protocol):
    """An alert line: it is asserted while some target wants to be polled."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the line may have changed."""

    def is_asserted(self) -> bool:
        """Return whether the line is asserted now, and clear the descriptor's events. May raise OSError."""

    def close(self) -> None: ...


class GpioAlert:
    """A GPIO line of the kernel's character device, pulled up if possible. Raises OSError if it is in use."""

    def __init__(self, chip: str, line: int) -> None:
        fd = os.open(chip, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._fd = _request(fd, line)
        finally:
            os.close(fd)
        os.set_blocking(self._fd, False)

    def fileno(self) -> int:
        return self._fd

    def is_asserted(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self._fd, _EVENTS_BYTES)) == _EVENTS_BYTES:
                pass
        values = bytearray(_VALUES.pack(0, 1))
        fcntl.ioctl(self._fd, _GET_VALUES, values)
        return bool(_VALUES.unpack(values)[0] & 1)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _request(chip: int, line: int) -> int:
    """Return a descriptor for `line`, with a pull-up, or without one if the chip has none."""
    flags = _ACTIVE_LOW | _INPUT | _RISING | _FALLING
    try:
        return _get_line(chip, line, flags | _PULL_UP)
    except OSError:
        return _get_line(chip, line, flags)


def _get_line(chip: int, line: int, flags: int) -> int:
    request = bytearray(_LINE_REQUEST.pack(line, *[0] * 63, b"buscoupler", flags, 0, 1, 0, -1))
    fcntl.ioctl(chip, _GET_LINE, request)
    fd: int = _LINE_REQUEST.unpack(request)[-1]
    return fd
