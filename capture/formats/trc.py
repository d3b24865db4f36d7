"""Traces of PEAK's tools (TRC), versions 1.0 to 2.1, read, and written as 2.1. Needs numpy.

Source: PEAK CAN TRC File Format 2.1, and python-can's can.io.trc. Times are ms from the start, which is a
number of days since 1899-12-30, or a date in words in version 1.0, taken as UTC. Error frames are read into
those of SocketCAN, and not written.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO, Final

from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.formats.columns import CODES, Numbers, channel_of, classic
from capture.formats.lines import LineReader
from capture.formats.source import Source
from capture.frames import CLASSIC_DATA, FD_SIZES, STATE, SWITCH, Frames

_OF_VERSION: Final = {
    "1.0": "N,O,I,L,D", "1.1": "N,O,d,I,L,D", "1.2": "N,O,B,d,I,L,D", "1.3": "N,O,B,d,I,R,L,D",
    "2.0": "N,O,T,I,d,l,D", "2.1": "N,O,T,B,I,d,R,L,D",
}  # fmt: skip
_DAYS_MAX: Final = 132_321  # 2262-04-12, the day after the last time of a capture
_EPOCH_DAYS: Final = 25_569  # from 1899-12-30 to 1970
_DAY_NS: Final = 86_400 * 10**9
_FD_MARKS: Final = {"FD": 0, "FB": SWITCH, "FE": SWITCH | STATE, "BI": STATE}
_FD_TYPES: Final = {marks: word for word, marks in _FD_MARKS.items()}
_BEGAN: Final = re.compile(r";\s*Start time:\s*(.+)$", re.I)  # all that version 1.0 has
_REMOTE_LAST: Final = re.compile(rb"\sRTR$|\sRR\s.*\s[02-9]$")  # behind a 1 another digit may follow
_OFFSET: Final = re.compile(r"(\d{1,14})(?:[.,](\d{1,6}))?$")
_NUMBER: Final = re.compile(r"[0-9A-Fa-f]{1,8}$")
_REST: Final = r"(?P<rest>(?:\s+[0-9A-F]{2}){4})$"
_ERROR_1: Final = re.compile(r"\s(?P<sort>[0-9A-F]{4,8})(?:\s+-)?\s+4(?:\s+ERROR)?" + _REST, re.IGNORECASE)
_ERROR_2: Final = re.compile(r"\s(?P<sort>[0-9A-F]{2})" + _REST, re.IGNORECASE)
"""The end of an error frame: its sort, and direction, place in the frame, and counts of errors, received and
sent. Before version 2 the sort stands as the identifier, and from then on in front of the others."""
_SORTS: Final = (1, 2, 4, 8)  # of a bit, form, stuff, other; 0 only tells counts
_OTHER_SORT: Final = 8
_OF_BUS: Final = ERROR | 0x08 | 0x80 | 0x200  # CAN_ERR_PROT, CAN_ERR_BUSERROR, CAN_ERR_CNT
_SENDING: Final = 0x80  # CAN_ERR_PROT_TX


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames. `style` learns the step of times."""
    return _Trace(source, style).read()


class _Trace(LineReader):
    """A trace that is read."""

    def __init__(self, source: Source, style: dict[str, Any]) -> None:
        super().__init__(source, style)
        self._is_begun = False
        self._columns = _OF_VERSION["1.0"].split(",")

    def knows(self, line: str) -> bool:
        line = line.strip()
        if not line:
            return True
        return self._head(line) if line[0] == ";" else self._frame(line)

    def is_whole(self, line: bytes) -> bool:
        """Return whether a last line is whole; that of a remote frame ends with its length, or `RTR`."""
        return bool(_REMOTE_LAST.search(line)) or super().is_whole(line)

    def _head(self, line: str) -> bool:
        key, _, value = line.partition("=")
        if key == ";$FILEVERSION":
            self._columns = _OF_VERSION[value.strip()].split(",")
        elif key == ";$COLUMNS":
            self._columns = [word.strip() for word in value.split(",")]
        elif key == ";$STARTTIME":
            self._is_begun = True
            return self._begin_at(value.strip().rstrip(";"))  # version 1.2 may have one
        elif not self._is_begun and (found := _BEGAN.match(line)):
            return self.begin(found[1])
        return True

    def _begin_at(self, days: str) -> bool:
        """Take the days since 1899-12-30. Those that no frame can have are told as dates in words are."""
        try:
            number = Decimal(days.replace(",", "."))
            fits = _EPOCH_DAYS <= number < _DAYS_MAX  # a larger number would take long to become an integer
        except ArithmeticError:
            fits = False
        if not fits:
            return self.begin(days)
        self.begin_ns = int((number - _EPOCH_DAYS) * _DAY_NS + Decimal("0.5"))
        return True

    def _frame(self, line: str) -> bool:
        words = line.split(None, len(self._columns) - 1)
        cells = dict(zip(self._columns, words, strict=False))
        kind, data = cells.get("T", "DT"), cells.get("D", "").split()
        if kind == "ER" or cells.get("d") == "Error" or data[:1] == ["ERROR"]:
            return self._error(cells, (_ERROR_2 if kind == "ER" else _ERROR_1).search(line))
        if cells.get("d", "Rx") not in ("Rx", "Tx") or cells["I"] == "FFFFFFFF":
            return False
        is_remote = kind == "RR" or data[:1] == ["RTR"]
        if kind not in ("DT", "RR") and kind not in _FD_MARKS:
            return False
        identifier = _identifier(cells["I"]) | (REMOTE if is_remote else 0)
        size, marks = self._length(cells, kind)
        content = b"" if is_remote else bytes.fromhex("".join(data[:size]))
        if len(content) < size and not is_remote:
            return False
        name, is_sent = channel_of(int(cells.get("B", "1"))), cells.get("d") == "Tx"
        when_ns = self._when(cells["O"])
        return self.built.add(when_ns, name, is_sent, identifier, size, marks, kind in _FD_MARKS, content)

    def _error(self, cells: dict[str, str], found: re.Match[str] | None) -> bool:
        """Take an error frame by its end: its line may lack the columns of identifier and length."""
        if found is None:
            return False
        data = _of_socketcan(int(found["sort"], 16), *bytes.fromhex(found["rest"]))
        name, when_ns = channel_of(int(cells.get("B", "1"))), self._when(cells["O"])
        return self.built.add(when_ns, name, False, _OF_BUS, CLASSIC_DATA, 0, False, data)

    def _length(self, cells: dict[str, str], kind: str) -> tuple[int, int]:
        """Return length and marks of a frame; `l` is a length, and `L` a length code."""
        if kind in _FD_MARKS:
            return int(cells["l"]) if "l" in cells else FD_SIZES[int(cells["L"]) & 15], _FD_MARKS[kind]
        return classic(int(cells["l"] if "l" in cells else cells["L"]))

    def _when(self, word: str) -> int:
        found = _OFFSET.match(word)
        if found is None:
            raise ValueError(word)
        if len(found[2] or "") > 3:
            self.style["step_ns"] = 1
        return self.begin_ns + int(found[1]) * 10**6 + int((found[2] or "").ljust(6, "0"))


def _of_socketcan(sort: int, way: int, place: int, received: int, sent: int) -> bytes:
    """Return the data of an error frame as the kernel has them. Raises `ValueError` for an unknown sort."""
    if sort not in _SORTS:
        raise ValueError(sort)
    violation = (0 if sort == _OTHER_SORT else sort) | (0 if way else _SENDING)
    return bytes((0, 0, violation, place, 0, 0, sent, received))


def _identifier(word: str) -> int:
    number, wide = int(word, 16) if _NUMBER.match(word) else -1, len(word) > 4
    if not 0 <= number <= (IDENTIFIER if wide else STANDARD_MAX):
        raise ValueError(word)
    return number | (EXTENDED if wide else 0)


class Writer:
    """A writer of traces of version 2.1; they start with the first frame, cut to ms."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._numbers, self._count = file, Numbers(), 0
        self._style = style  # whose reader may still learn
        self._begin_ns: int | None = None

    def add(self, frames: Frames) -> None:
        """Write frames."""
        lines = list[str]()
        if self._begin_ns is None:
            self._begin_ns = int(frames.ts_ns[0]) // 10**6 * 10**6
            days = Decimal(self._begin_ns) / _DAY_NS + _EPOCH_DAYS
            lines += [";$FILEVERSION=2.1", f";$STARTTIME={days:.16f}", f";$COLUMNS={_OF_VERSION['2.1']}",
                      ";   Number   Offset [ms]  Type Bus ID   Rx/Tx Reserved DLC Data"]  # fmt: skip
        numbers = [self._numbers.of(name) for name in frames.names]
        columns = zip(*(column.tolist() for column in frames.columns[:-1]), strict=True)
        for (ts_ns, channel, is_sent, *rest), data in zip(columns, frames.data, strict=True):
            self._count += 1
            time, way = self._time(ts_ns - self._begin_ns), "Tx" if is_sent else "Rx"
            lines.append(f"{self._count:>7} {time} {_line(numbers[channel], way, data.tobytes(), *rest)}")
        self._file.write(("\r\n".join(lines) + "\r\n").encode())

    def _time(self, offset_ns: int) -> str:
        ms, ns = divmod(max(0, offset_ns), 10**6)
        return f"{ms:>9}.{ns:06}" if self._style.get("step_ns") == 1 else f"{ms:>9}.{ns // 1000:03}"

    def close(self) -> None:
        """Do nothing: the trace has no end of its own."""


def _line(channel: int, way: str, data: bytes, *row: Any) -> str:
    number, size, marks, is_fd = row
    word = f"{number & IDENTIFIER:0{8 if number & EXTENDED else 4}X}"
    kind = _FD_TYPES[marks & (SWITCH | STATE)] if is_fd else "RR" if number & REMOTE else "DT"
    code = CODES[size] if is_fd else marks or size
    octets = "" if number & REMOTE else data[:size].hex(" ").upper()
    return f"{kind} {channel:>2} {word:>8} {way} -  {code:<4} {octets}".rstrip()
