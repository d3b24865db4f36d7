"""Frames one at a time, as text and objects have them, made to columns; and channels by number. Needs numpy.

Tools of Vector and PEAK number channels from 1: channel 1 is `can0`, as python-can has it. Pure.
"""

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, STANDARD_MAX
from capture.frames import CLASSIC_DATA, FD_DATA, FD_SIZES, Frames
from capture.schema import TIME_MAX_NS

_DIGITS: Final = re.compile(r"\d{1,2}$")
CODES: Final = {size: code for code, size in enumerate(FD_SIZES)}
"""The length codes of FD frames, by length."""
_CLASSIC_SIZES: Final = range(CLASSIC_DATA + 1)


class Builder:
    """A collector of frames. `add` takes them one at a time, and `take` gives those so far."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._rows: list[tuple[int, int, bool, int, int, int, bool]] = []
        self._data: list[bytes] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        ts_ns: int,
        name: str,
        is_sent: bool,
        identifier: int,
        size: int,
        marks: int,
        is_fd: bool,
        data: bytes,
    ) -> bool:
        """Add a frame; data are filled with zeros or cut to `size`. Return False if it cannot be one."""
        if not 0 <= ts_ns <= TIME_MAX_NS or size not in (CODES if is_fd else _CLASSIC_SIZES):
            return False
        if not identifier & (ERROR | EXTENDED) and identifier & IDENTIFIER > STANDARD_MAX:
            return False
        number = self._names.setdefault(name, len(self._names))
        self._rows.append((ts_ns, number, is_sent, identifier, size, marks, is_fd))
        self._data.append(data[:size])
        return True

    def take(self) -> Frames:
        """Return the frames, at least one, and forget them."""
        rows, data, names = self._rows, self._data, list(self._names)
        self._rows, self._data = [], []
        width = FD_DATA if any(map(len, data)) and max(map(len, data)) > CLASSIC_DATA else CLASSIC_DATA
        octets = np.frombuffer(b"".join(one.ljust(width, b"\0") for one in data), np.uint8)
        ts_ns, channel, is_sent, ids, sizes, marks, is_fd = zip(*rows, strict=True)
        return Frames(
            np.array(ts_ns, np.int64), np.array(channel, np.int64), np.array(is_sent, np.bool_),
            np.array(ids, np.uint32), np.array(sizes, np.uint8), np.array(marks, np.uint8),
            np.array(is_fd, np.bool_), octets.reshape(-1, width), names,
        )  # fmt: skip


def classic(code: int) -> tuple[int, int]:
    """Return length and mark of a classic frame with a length code. What is no code is no length either."""
    return (CLASSIC_DATA, code) if CLASSIC_DATA < code < 16 else (code, 0)


def channel_of(number: int) -> str:
    """Return the name of a numbered channel."""
    return f"can{max(0, number - 1)}"


def numbered() -> Callable[[str], str]:
    """Return the function from names to those of the numbers that they have in one file."""
    numbers = Numbers()
    return lambda name: channel_of(numbers.of(name))


class Numbers:
    """The numbers of channels in one file: that at the end of a name and one, or the next that is free."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def of(self, name: str) -> int:
        """Return the number of a channel."""
        number = self._taken.get(name)
        if number is None:
            found, used = _DIGITS.search(name), set(self._taken.values())
            number = int(found[0]) + 1 if found else 1
            while number in used:
                number += 1
            self._taken[name] = number
        return number
