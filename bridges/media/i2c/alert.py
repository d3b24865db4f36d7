"""The alert line of an I2C bus: active low, open drain, one wire for all targets (docs/wire/i2c.md)."""

import contextlib
import fcntl
import os
from struct import Struct
from typing import Protocol

# <linux/gpio.h>, version 2 of the character device's interface
_GET_LINE = 0xC250B407
_GET_VALUES = 0xC010B40E
_LINE_REQUEST = Struct("=64I32s QI20x240x II20xi")
_VALUES = Struct("=QQ")
_ACTIVE_LOW, _INPUT, _RISING, _FALLING, _PULL_UP = 1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 8
_EVENTS_BYTES = 48 * 16


class Alert(Protocol):
    """A line that says that some target has something to say."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when the line may have changed."""

    def is_asserted(self) -> bool:
        """Return its level now; takes back what made the descriptor readable. May raise OSError."""

    def close(self) -> None: ...


class GpioAlert:
    """A GPIO of the kernel's character device, pulled up where the chip can. OSError if it is taken."""

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
    """Open a descriptor for `line`: with a pull-up, or without where the chip has none."""
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
