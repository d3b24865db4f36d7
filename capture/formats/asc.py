"""Logs of Vector's tools as text (ASC): frames of CAN and CAN FD, read and written. Needs numpy.

Source: python-can's can.io.asc, and the logs of CANoe and CANalyzer. Times count from the date of the trigger
block, which has no zone: it is read and written as UTC. Other lines (statistics, chip states) are left out.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.formats.columns import CODES, Numbers, channel_of, classic
from capture.formats.lines import LineReader
from capture.formats.source import Source
from capture.frames import CLASSIC_DATA, FD_SIZES, STATE, SWITCH, Frames

_TIME: Final = r"\s*(\d{1,10})\.(\d{1,9})\s+"
_TIMED: Final = re.compile(_TIME)
_CLASSIC: Final = re.compile(
    _TIME + r"(\d{1,3})\s+([0-9a-f]{1,10})(x?)\s+(rx|tx)\s+([dr])(?:\s+([0-9a-f]{1,2}))?((?:\s.*)?)$", re.I
)
_ERROR: Final = re.compile(_TIME + r"(?:CANFD\s+)?(\d{1,3})\s+(?:[rt]x\s+)?ErrorFrame\b", re.I)
_FD: Final = re.compile(
    _TIME + r"CANFD\s+(\d{1,3})\s+(rx|tx)\s+([0-9a-f]{1,10})(x?)\s+(?:(?!\d\s)\S+\s+)?([01])\s+([01])\s+"
    r"([0-9a-f]{1,2})\s+(\d{1,2})((?:\s.*)?)$",
    re.I,
)
_DATE: Final = re.compile(r"\s*(?:date|begin\s+triggerblock)\s+(.+?)\s*$", re.I)
_BASE: Final = re.compile(r"\s*base\s+(hex|dec)(?:\s+timestamps\s+(absolute|relative))?", re.I)
_HEADER: Final = re.compile(
    r"\s*(//|$|(no\s+)?internal events|(begin|end) triggerblock\s*$|[\d.]+\s+start of measurement)", re.I
)
_OCTETS: Final = re.compile(r"(?:\s+[0-9a-f]{2})+\s*$", re.I)
_LONG_CODE: Final = re.compile(r"9|1[0-5]")  # decimal, as no other number of these lines
_EDL, _REMOTE_FD = 0x1000, 0x10
_FD_AS_CLASSIC: Final = "frames of more than 8 bytes in lines of classic ones: read as those of CAN FD"
_FLAGS_AT: Final = 2  # behind the data: duration, length, flags


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames. `style` learns the step of times."""
    return _Log(source, style).read()


class _Log(LineReader):
    """A log that is read."""

    def __init__(self, source: Source, style: dict[str, Any]) -> None:
        super().__init__(source, style)
        self._base, self._relative, self._last_ns = 16, False, 0

    def knows(self, line: str) -> bool:
        if self._relative and (found := _TIMED.match(line)):
            self._last_ns += _offset_ns(found[1], found[2])  # from the line before, whatever this one says
        return self._frame(line.partition(" //")[0]) or self._head(line)

    def is_whole(self, line: bytes) -> bool:
        """Return whether a last line is whole. Behind the data of a CAN FD frame stands what it is."""
        return self._base == 16 and b"CANFD" not in line.upper() and super().is_whole(line)

    def _head(self, line: str) -> bool:
        if found := _DATE.match(line):
            return self.begin(found[1])
        if found := _BASE.match(line):
            self._base = 10 if found[1].lower() == "dec" else 16
            self._relative = (found[2] or "").lower() == "relative"
        else:
            return bool(_HEADER.match(line))
        return True

    def _when(self, seconds: str, fraction: str) -> int:
        if len(fraction) > 6:
            self.style["step_ns"] = 1
        return self.begin_ns + (self._last_ns if self._relative else _offset_ns(seconds, fraction))

    def _frame(self, line: str) -> bool:
        if found := _CLASSIC.match(line):
            return self._classic(found)
        if found := _FD.match(line):
            return self._fd(found)
        if found := _ERROR.match(line):
            name, size = channel_of(int(found[3])), CLASSIC_DATA
            return self.built.add(self._when(found[1], found[2]), name, False, ERROR, size, 0, False, b"")
        return False

    def _identifier(self, digits: str, wide: str) -> int:
        number = int(digits, self._base)
        if number > (IDENTIFIER if wide else STANDARD_MAX):
            raise ValueError
        return number | (EXTENDED if wide else 0)

    def _bytes(self, words: list[str]) -> bytes:
        return bytes(int(word, self._base) for word in words)

    def _classic(self, found: re.Match[str]) -> bool:
        seconds, fraction, channel, digits, wide, direction, kind, code, rest = found.groups()
        identifier, is_remote = self._identifier(digits, wide), kind.lower() == "r"
        long = 0 if is_remote else self._long(code or "", rest)  # CAN FD has no remote frames
        size, marks = (long, 0) if long else classic(int(code or "0", 16))
        data = b"" if is_remote else self._bytes(rest.split()[:size])
        if len(data) < size and not is_remote:
            return False
        identifier |= REMOTE if is_remote else 0
        is_sent, name = direction.lower() == "tx", channel_of(int(channel))
        return self.built.add(
            self._when(seconds, fraction), name, is_sent, identifier, size, marks, bool(long), data
        )

    def _long(self, code: str, rest: str) -> int:
        """Return the length of an FD frame that a converter wrote as a classic one, 0 if it is none."""
        if self._base != 16 or not _LONG_CODE.fullmatch(code) or not _OCTETS.match(rest):
            return 0
        size: int = FD_SIZES[int(code)]
        if len(rest.split()) != size:
            return 0
        self._source.told.note(_FD_AS_CLASSIC)
        return size

    def _fd(self, found: re.Match[str]) -> bool:
        seconds, fraction, channel, direction, digits, wide, switch, state, code, length, rest = (
            found.groups()
        )
        size, words = int(length), rest.split()
        data = self._bytes(words[:size])
        if len(data) < size:
            return False
        flags = int(words[size + _FLAGS_AT], 16) if len(words) > size + _FLAGS_AT else _EDL
        marks = (SWITCH if switch == "1" else 0) | (STATE if state == "1" else 0)
        # Flags of some tools.
        is_fd = bool(flags & _EDL) or (not flags and bool(marks or size > CLASSIC_DATA))
        identifier = self._identifier(digits, wide)
        if not is_fd:
            size, marks = classic(int(code, 16))
            identifier |= REMOTE if flags & _REMOTE_FD else 0
        is_sent, name = direction.lower() == "tx", channel_of(int(channel))
        return self.built.add(
            self._when(seconds, fraction), name, is_sent, identifier, size, marks, is_fd, data
        )


def _offset_ns(seconds: str, fraction: str) -> int:
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))


class Writer:
    """A writer of the log, in hex, with times from the trigger on: the first frame's, cut to ms."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._numbers = file, Numbers()
        self._style = style  # whose reader may still learn
        self._begin_ns: int | None = None

    def add(self, frames: Frames) -> None:
        """Write frames."""
        lines = list[str]()
        if self._begin_ns is None:
            self._begin_ns = int(frames.ts_ns[0]) // 10**6 * 10**6
            when = datetime.fromtimestamp(self._begin_ns // 10**9, UTC)
            date = f"{when:%a %b %d %H:%M:%S}.{self._begin_ns // 10**6 % 1000:03} {when:%Y}"
            lines += [f"date {date}", "base hex  timestamps absolute", "internal events logged",
                      f"Begin Triggerblock {date}", f"{self._time(0)} Start of measurement"]  # fmt: skip
        numbers = [self._numbers.of(name) for name in frames.names]
        columns = zip(*(column.tolist() for column in frames.columns[:-1]), strict=True)
        for (ts_ns, channel, is_sent, *rest), data in zip(columns, frames.data, strict=True):
            time, way = self._time(ts_ns - self._begin_ns), "Tx" if is_sent else "Rx"
            lines.append(f"{time} {_line(numbers[channel], way, data.tobytes(), *rest)}")
        self._file.write(("\n".join(lines) + "\n").encode())

    def _time(self, offset_ns: int) -> str:
        seconds, ns = divmod(max(0, offset_ns), 10**9)
        return f"{seconds:>4}.{ns:09}" if self._style.get("step_ns") == 1 else f"{seconds:>4}.{ns // 1000:06}"

    def close(self) -> None:
        """Write the end of the trigger block."""
        self._file.write(b"End TriggerBlock\n")


def _line(channel: int, way: str, data: bytes, *row: Any) -> str:
    number, size, marks, is_fd = row
    if number & ERROR:
        return f"{channel}  ErrorFrame"
    word = f"{number & IDENTIFIER:X}{'x' if number & EXTENDED else ''}"
    octets = data[:size].hex(" ").upper()
    if is_fd:
        switch, state = marks & SWITCH, bool(marks & STATE)
        flags = _EDL | (0x2000 if switch else 0) | (0x4000 if state else 0)
        text = f"CANFD {channel:>3} {way:<4} {word:>8}  {'':>32} {switch} {state:d} {CODES[size]:x}"
        return f"{text} {size:>2} {octets} {0:>8} {0:>4} {flags:>8X} {0:>8} {0:>8} {0:>8} {0:>8} {0:>8}"
    if number & REMOTE:
        return f"{channel}  {word:<15} {way:<4} r {marks or size:x}"
    return f"{channel}  {word:<15} {way:<4} d {marks or size:x} {octets}".rstrip()
