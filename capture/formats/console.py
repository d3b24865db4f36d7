"""The console of candump, kept in a file: `  can0  123   [2]  11 22`, with a time in front or without.

Source: candump.c and lib.c of can-utils. `-t a` and `-t A` are times, the latter of a date without zone, UTC
here; `-t z` and `-t d` count from the first frame, and from the one before. `-x` tells directions and the
flags of FD frames, `-8` length codes; `-a`, `-c`, `-e`, `-i` and `-S` write data in other ways. A length of
two digits is one of an FD frame. Old versions wrote `<0x123> [2] 11 22`. Needs numpy.
"""

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.formats.columns import classic
from capture.formats.lines import LineReader
from capture.formats.source import Source
from capture.frames import FD_SIZES, STATE, SWITCH

_COLOR: Final = re.compile(r"\x1b\[[\d;]*m")
_STAMP: Final = r"(?:\((?:([\d-]{10} [\d:]{8}|\d{1,10})\.(\d{6}|\d{9}))\) +)?"
_NAMED: Final = r"(?:(\S{1,15}) +(?:(RX|TX) ([B-]) ([E-]) +)?([0-9A-F]{3}|[0-9A-F]{8})|<0x([0-9A-F]{3,8})>) +"
_LINE: Final = re.compile(rf" *{_STAMP}{_NAMED}(?:\[(\d{{1,2}})\]|\{{([0-9A-F])\}}) *(.*)$", re.DOTALL | re.I)
_STAMPED: Final = re.compile(rb"^(?:\x1b\[[\d;]*m| )*\((\d{1,9}\.\d{6,9})\) ", re.MULTILINE)
_PAUSE: Final = re.compile(r" *\((\d{1,9})\.(\d{6,9})\) ")
_BACK_PARTS: Final = 8  # one time of so many that is less than the last one tells pauses from times
_BYTE: Final = re.compile(r"[ `]?([01]{8}|[0-9A-F]{2})(?![0-9A-F])", re.I)
_REMOTE: Final = "remote request"
_OLD_NAME: Final = "can0"


class ConsoleReader(LineReader):
    """A reader of what candump showed. `style` is that of its log."""

    def __init__(self, source: Source, style: dict[str, Any]) -> None:
        super().__init__(source, style)
        style["direction"] = False
        self._between, self._last_ns, self._is_error = _are_pauses(source.head), 0, False

    def knows(self, line: str) -> bool:
        line = _COLOR.sub("", line).rstrip()
        if not line or (self._is_error and line.startswith("\t")):  # in words, behind an error frame
            return True
        self._is_error = False
        if self._between and (found := _PAUSE.match(line)):
            self._last_ns += int(found[1]) * 10**9 + int(found[2].ljust(9, "0"))  # whatever the line says
        return self._frame(line)

    def is_whole(self, line: bytes) -> bool:
        """Return whether a last line has all the data that it says it has."""
        found = _LINE.match(_COLOR.sub("", line.decode("latin-1")).rstrip())
        try:
            return bool(found and _data(found[11], _size(found)) is not None)
        except ValueError:
            return False

    def _frame(self, line: str) -> bool:
        found = _LINE.match(line)
        if not found:
            return False
        when, fraction, name, way, _, _, digits, old, length, code, rest = found.groups()
        is_fd, size, data = len(length or "") == 2, _size(found), _data(rest, _size(found))
        if data is None:
            return False
        identifier = _identifier(digits or old) | (REMOTE if rest == _REMOTE else 0)
        marks = _fd_marks(found) if is_fd else classic(int(code or "0", 16))[1]
        self._is_error, is_sent = bool(identifier & ERROR), way == "TX"
        self.style["direction"] |= way is not None
        when_ns = self._when(when, fraction)
        return self.built.add(when_ns, name or _OLD_NAME, is_sent, identifier, size, marks, is_fd, data)

    def _when(self, text: str | None, fraction: str) -> int:
        """Return a time. What candump did not write is told, for a frame has to have one."""
        if text is None:
            self._source.told.note("times that are not in the file, read as 0: candump -t a shows them")
            return 0
        ns = int(fraction.ljust(9, "0"))
        self.style["step_ns"] = 1 if len(fraction) > 6 else self.style["step_ns"]
        if "-" in text:
            found = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
            return int(found.timestamp()) * 10**9 + ns
        ns += int(text) * 10**9
        if len(text) < 10:
            self._source.told.note(
                "dates that are not in the file, so times count from 1970: candump -t a shows them"
            )
        return self._last_ns if self._between else ns


def _size(found: re.Match[str]) -> int:
    """Return the length of a frame. Raises `ValueError` if there is none such."""
    size = int(found[9]) if found[9] else classic(int(found[10], 16))[0]
    if size not in FD_SIZES:
        raise ValueError(size)
    return size


def _fd_marks(found: re.Match[str]) -> int:
    return (SWITCH if found[5] == "B" else 0) | (STATE if found[6] == "E" else 0)


def _data(text: str, size: int) -> bytes | None:
    """Return the data of a line, None if there are fewer. Between back quotes the last byte is the first."""
    if text == _REMOTE:
        return b""
    found, at = list[str](), 0
    while len(found) < size and (byte := _BYTE.match(text, at)):
        found.append(byte[1])
        at = byte.end()
    if len(found) < size:
        return None
    octets = [int(one, 2 if len(one) == 8 else 16) for one in found]
    return bytes(octets[::-1] if "`" in text[:at] else octets)


def _identifier(digits: str) -> int:
    number = int(digits, 16)
    if len(digits) < 8:
        limit, mark = STANDARD_MAX, 0
    else:
        limit, mark = ERROR | IDENTIFIER, 0 if number & ERROR else EXTENDED
    if number > limit:
        raise ValueError(digits)
    return number | mark


def _are_pauses(head: bytes) -> bool:
    """Return whether times are those since the frame before: they go back again and again.

    Times from the first frame do so seldom, where frames of two interfaces are close to each other.
    """
    times = [float(found) for found in _STAMPED.findall(head)]
    back = sum(later < sooner for sooner, later in pairwise(times))
    return back * _BACK_PARTS > len(times)
