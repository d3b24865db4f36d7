"""Logs of BUSMASTER, read: `14:19:11:4184 Tx 1 0x099 s 8 00 00 ...`, a frame a line. Needs numpy.

Source: BUSMASTER's LogObjectCAN and BaseLogObject, and SavvyCAN, which writes such logs with ms and from
channel 0. The head says the date, whether numbers are hex or decimal, and what times are: of day, since the
start, or since the frame before. A heading names columns; those of J1939 have others.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from bus.wire.identifier import EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.formats.columns import channel_of
from capture.formats.lines import LineReader
from capture.formats.source import Source
from capture.frames import CLASSIC_DATA, Frames

_BEGAN: Final = re.compile(
    r"START DATE AND TIME (\d{1,2}):(\d{1,2}):(\d{4}) (\d{1,2}):(\d{1,2}):(\d{1,2}):(\d{1,3})$"
)
_TIME: Final = re.compile(r"(\d{1,6}):(\d{1,2}):(\d{1,2}):(\d{1,6})$")
_NUMBER: Final = re.compile(r"(?:0[xX])?[0-9A-Fa-f]{1,10}$")
_CHANNEL: Final = re.compile(r"\d{1,3}$")
_COLUMNS: Final = "<Time><Tx/Rx><Channel><CAN ID><Type><DLC><DataBytes>"
_FROM_0: Final = re.compile(rb"^[\d:]+ [TR]x 0 ", re.MULTILINE)
_TYPES: Final = {"s": 0, "x": EXTENDED, "sr": REMOTE, "xr": EXTENDED | REMOTE}
_BASES: Final = {"HEX": 16, "DEC": 10}
_DAY_NS, _HOUR_NS = 86_400 * 10**9, 3600 * 10**9
_BACK_NS, _FORTH_NS = 12 * _HOUR_NS, 23 * _HOUR_NS


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames."""
    return _Log(source, style).read()


class _Log(LineReader):
    """A log that is read."""

    def __init__(self, source: Source, style: dict[str, Any]) -> None:
        super().__init__(source, style)
        self._base, self._mode, self._is_j1939 = 16, "SYSTEM MODE", False
        self._sum_ns = self._last_ns = self._day_ns = 0
        self._first = 0 if _FROM_0.search(source.head) else 1
        self._columns = _names(_COLUMNS)

    def knows(self, line: str) -> bool:
        line = line.strip()
        return not line or (
            self._head(line.strip("*").strip()) if line.startswith("***") else self._frame(line)
        )

    def is_whole(self, line: bytes) -> bool:
        """Return whether a last line has all its data, and all digits of the last byte."""
        words, digits = line.decode("latin-1").split(), 2 if self._base == 16 else 3
        try:
            size = int(words[self._columns.index("DLC")])
            return size > 0 and len(words) == len(self._columns) - 1 + size and len(words[-1]) == digits
        except (ValueError, IndexError):
            return False

    def _head(self, text: str) -> bool:
        if text.startswith("START DATE AND TIME"):
            return self._begin(text)
        if text.startswith("<"):
            self._columns = _names(text)
        elif text in _BASES:
            self._base = _BASES[text]
        elif text.endswith(" MODE"):
            self._mode = text
        elif text.startswith("PROTOCOL "):
            self._is_j1939 = text == "PROTOCOL J1939"
        return True

    def _begin(self, text: str) -> bool:
        """Take the start of a session: of its day, where times are those of day."""
        self._sum_ns = self._last_ns = self._day_ns = self.begin_ns = 0
        found = _BEGAN.match(text)
        if found is None:
            return self.begin(text)
        day, month, year, hour, minute, second, ms = map(int, found.groups())
        when = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        self.begin_ns = int(when.timestamp()) * 10**9 + ms * 10**6
        self._last_ns, self._day_ns = self.begin_ns % _DAY_NS, self.begin_ns // _DAY_NS * _DAY_NS
        return True

    def _frame(self, line: str) -> bool:
        words = line.split(None, len(self._columns) - 1)
        cells = dict(zip(self._columns, words, strict=False))
        when_ns, size = self._when(cells["Time"]), int(cells["DLC"])
        wide = EXTENDED if self._is_j1939 else _TYPES[cells["Type"].lower()]
        identifier = _number(cells["CAN ID"], 16 if self._is_j1939 else self._base)
        is_remote, limit = bool(wide & REMOTE), IDENTIFIER if wide & EXTENDED else STANDARD_MAX
        data = (
            b""
            if is_remote
            else bytes(_number(word, self._base) for word in cells.get("DataBytes", "").split())
        )
        if identifier > limit or size > CLASSIC_DATA or (len(data) < size and not is_remote):
            return False
        if not _CHANNEL.match(cells["Channel"]):
            return False
        name, is_sent = channel_of(int(cells["Channel"]) + 1 - self._first), cells["Tx/Rx"] == "Tx"
        return self.built.add(when_ns, name, is_sent, identifier | wide, size, 0, False, data)

    def _when(self, text: str) -> int:
        """Return a time. That of day goes on with the next day behind midnight."""
        found = _TIME.match(text)
        if found is None:
            raise ValueError(text)
        seconds = (int(found[1]) * 60 + int(found[2])) * 60 + int(found[3])
        offset_ns = seconds * 10**9 + int(found[4].ljust(9, "0"))
        if self._mode == "RELATIVE MODE":
            self._sum_ns += offset_ns
            return self.begin_ns + self._sum_ns
        return self.begin_ns + offset_ns if self._mode == "ABSOLUTE MODE" else self._of_day(offset_ns)

    def _of_day(self, time_ns: int) -> int:
        """Return a time of day. Frames of two channels may be in no order at midnight: one goes back, too."""
        if time_ns < self._last_ns - _BACK_NS:
            self._day_ns += _DAY_NS
        elif time_ns > self._last_ns + _FORTH_NS:
            self._day_ns -= _DAY_NS
        self._last_ns = time_ns
        return self._day_ns + time_ns


def _names(heading: str) -> list[str]:
    return heading.strip("<>").split("><")


def _number(text: str, base: int) -> int:
    """Return a number. Raises `ValueError` for signs and gaps, which Python takes for parts of one."""
    if not _NUMBER.match(text):
        raise ValueError(text)
    return int(text, 16 if text[:2] in ("0x", "0X") else base)
