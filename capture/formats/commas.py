"""Tables of CAN frames as comma separated values: read of many tools, and written as SavvyCAN has them.

The names in the heading say what is in which column (`heading`), the first rows what none tells (`guesses`).
Rows may be longer or shorter than the heading: SavvyCAN ends each with a comma more. Needs numpy.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO, Final

import numpy as np

from bus.text import MARK
from bus.wire.identifier import ERROR, EXTENDED, IDENTIFIER, REMOTE, STANDARD_MAX
from capture.files import CaptureError
from capture.formats.cells import DECIMAL, HEX, Bytes, Cells, Column, matrix, numbers
from capture.formats.columns import Numbers
from capture.formats.guesses import guessed, ns_of
from capture.formats.heading import Heading, heading_of, of_row
from capture.formats.source import LeftOut, Source, line_blocks
from capture.frames import CLASSIC_DATA, FD_DATA, FD_SIZES, STATE, SWITCH, Flags, Frames, Ints
from capture.schema import TIME_MAX_NS

_BAD: Final = "lines that are no CAN frame"
_TIME_DIGITS, _FRACTION_DIGITS, _ID_DIGITS, _ID_DIGITS_DECIMAL, _SIZE_DIGITS = 19, 9, 8, 9, 3
_NAME_CHARS: Final = 31
_ONLY_NAME: Final = "can0"
_TRUE, _SENT = b"tyxeTYXE2", b"tTsS"
_IS_SIZE: Final = np.isin(np.arange(256), FD_SIZES)
_SIZE_OF_CODE: Final = np.array(FD_SIZES)
_WHOLE_BYTE: Final = re.compile(rb"[0-9A-Fa-f]{2}[\s\"\]]*$")
_HEADING: Final = "Time Stamp,ID,Extended,Dir,Bus,LEN,D1,D2,D3,D4,D5,D6,D7,D8\n"


def read(source: Source, style: dict[str, Any]) -> Iterator[Frames]:
    """Read frames. Raises `CaptureError` if the file has no heading that tells them."""
    table, skip = _begun(source)
    for block in line_blocks(source, table.is_whole):
        frames = table.parse(block[skip:], source.told)
        skip = 0
        if len(frames):
            yield frames


def _begun(source: Source) -> tuple["_Table", int]:
    """Return the table of a file, and how many bytes stand in front of its rows."""
    head, at = source.head.removeprefix(MARK), 0
    lines = head.split(b"\n")
    if found := of_row(lines[0]):
        return _Table(found), 0
    for place, line in enumerate(lines[:-1]):
        at += len(line) + 1
        if found := heading_of(line):
            return _Table(guessed(found, lines[place + 1 : -1], source.told)), at
    raise CaptureError(
        f"{source.path}: no heading with columns of time, identifier and data of CAN frames: "
        "put one in front, such as time_s,id_hex,dlc,data_hex"
    )


class _Table:
    """A table with a heading that tells all."""

    def __init__(self, heading: Heading) -> None:
        self._heading, self._places = heading, heading.places
        self._heading_line = heading.line.rstrip(b"\r")

    def is_whole(self, line: bytes) -> bool:
        """Return whether a last line without an end has all the data that it says it has."""
        (first, last), cells = self._heading.octets, line.split(self._heading.delimiter)
        if not self._heading.ends_with_data or len(cells) <= first:
            return False
        frames = self.parse(line + b"\n", LeftOut())
        if not len(frames) or not self._tells_size(frames):
            return False
        size = int(frames.sizes[0])
        is_behind = len(cells) > first + (size if last > first else 1)
        is_full = self._heading.octet_base == 16 and bool(_WHOLE_BYTE.search(line))
        return not size or is_behind or is_full or self._heading.is_base64

    def _tells_size(self, frames: Frames) -> bool:
        """Return whether a line says the length of its frame. A length code above 8 may mean several."""
        is_short = frames.sizes[0] <= CLASSIC_DATA and (frames.is_fd[0] or not frames.marks[0])
        return "length" in self._places or ("code" in self._places and bool(is_short))

    def parse(self, block: bytes, told: LeftOut) -> Frames:
        """Read frames out of whole lines."""
        cells = Cells(block, self._heading.delimiter) if block else None
        if cells is None or not len(cells):
            return _nothing()
        times, good = self._times(cells)
        ids, is_id = self._ids(cells)
        found = self._data(cells)
        is_remote = self._is(cells, "remote")
        sizes, marks, is_fd, is_sized = self._sizes(cells, found.counts, is_remote)
        names, channel, is_named = self._channels(cells)
        good &= is_id & found.good & is_sized & is_named
        self._leave(cells, good, told)
        ids |= np.where(is_remote, REMOTE, 0)
        ids = np.where(self._is(cells, "error"), ids & ~EXTENDED | ERROR, ids)
        sizes = np.where(good, sizes, 0)
        data = matrix(found, np.where(is_remote, 0, sizes))
        columns = times, channel, self._is_sent(cells), ids.astype(np.uint32), sizes.astype(np.uint8)
        return Frames.of((one[good] for one in (*columns, marks.astype(np.uint8), is_fd, data)), names)

    def _leave(self, cells: Cells, good: Flags, told: LeftOut) -> None:
        """Count lines that are no frame, but for a heading once more, as of files one behind another."""
        left = [
            line for line in map(cells.line, np.flatnonzero(~good).tolist()) if line != self._heading_line
        ]
        if left:
            told.leave(_BAD, len(left), left[0])

    def _column(self, cells: Cells, role: str) -> Column | None:
        place = self._places.get(role)
        return None if place is None else cells.column(place)

    def _times(self, cells: Cells) -> tuple[Ints, Flags]:
        """Return times in ns. What is no plain number is read one by one."""
        column, unit_ns = cells.column(self._places["time"]), self._heading.unit_ns
        dot = cells.first(b"." if self._heading.delimiter == b"," else b".,", column)
        whole, good = numbers(cells.octets, Column(column.start, dot), _TIME_DIGITS, DECIMAL, 10)
        behind = Column(np.minimum(dot + 1, column.end), column.end)
        part, is_part = numbers(cells.octets, behind, _FRACTION_DIGITS, DECIMAL, 10)
        step_ns = unit_ns // 10 ** np.clip(behind.sizes, 0, _FRACTION_DIGITS)
        good &= (is_part & (step_ns > 0)) | (behind.sizes == 0)
        good &= (whole >= 0) & (whole <= TIME_MAX_NS // unit_ns)
        times = np.where(good, whole, 0) * unit_ns + part * step_ns
        for at in np.flatnonzero(~good | (times < 0)).tolist():
            found = ns_of(cells.text(column, at), unit_ns)
            good[at] = found is not None
            times[at] = found or 0
        return times, good

    def _ids(self, cells: Cells) -> tuple[Ints, Flags]:
        """Return identifiers with the mark of extended ones. Those in hex may begin with 0x; an x behind is a
        mark, too."""
        column, base = cells.column(self._places["id"]), self._heading.id_base
        has_cross = (cells.at(column.start) == ord("0")) & (cells.at(column.start + 1) | 32 == ord("x"))
        has_cross &= column.sizes > 2
        is_marked = cells.at(np.maximum(column.end - 1, column.start)) | 32 == ord("x")
        column = Column(column.start, column.end - is_marked * (column.sizes > 2))
        digits = Column(column.start + 2 * has_cross, column.end)
        ids, good = numbers(cells.octets, digits, _ID_DIGITS, HEX, 16)
        if base == 10 and not has_cross.all():
            plain, is_plain = numbers(cells.octets, column, _ID_DIGITS_DECIMAL, DECIMAL, 10)
            ids, good = np.where(has_cross, ids, plain), np.where(has_cross, good, is_plain)
        is_wide = self._is(cells, "extended") | is_marked | (ids > STANDARD_MAX)
        return np.where(is_wide, ids | EXTENDED, ids), good & (ids <= IDENTIFIER)

    def _data(self, cells: Cells) -> Bytes:
        first, last = self._heading.octets
        column = cells.column(first)
        if self._heading.is_base64:
            return cells.in_base64(column)
        if self._heading.has_label:
            column = Column(column.start, np.maximum(column.start, cells.last_marks))
        elif last > first:
            column = Column(column.start, np.maximum(column.start, cells.column(last).end))
        return cells.in_text(column, self._heading.octet_base)

    def _number(self, cells: Cells, role: str) -> tuple[Ints, Flags]:
        column = self._column(cells, role)
        assert column is not None
        return numbers(cells.octets, column, _SIZE_DIGITS, DECIMAL, 10)

    def _sizes(self, cells: Cells, have: Ints, is_remote: Flags) -> tuple[Ints, Ints, Flags, Flags]:
        """Return lengths, marks, which frames are of FD, and which lengths may be. `have` counts bytes."""
        every = np.ones(len(cells), np.bool_)
        code, is_code = self._number(cells, "code") if "code" in self._places else (have, every)
        if "length" in self._places:
            sizes, good = self._number(cells, "length")
        else:
            sizes, good = np.where(is_remote, np.minimum(code, CLASSIC_DATA), _size(code, have)), every
        is_fd = self._is(cells, "fd") if "fd" in self._places else sizes > CLASSIC_DATA
        good &= is_code & np.where(
            is_fd, (sizes <= FD_DATA) & _IS_SIZE[np.clip(sizes, 0, 255)], sizes <= CLASSIC_DATA
        )
        is_coded = ~is_fd & (sizes == CLASSIC_DATA) & (code > CLASSIC_DATA) & (code < len(FD_SIZES))
        fast = np.where(self._is(cells, "switch"), SWITCH, 0) | np.where(self._is(cells, "state"), STATE, 0)
        marks = np.where(is_fd, fast, np.where(is_coded & ("code" in self._places), code, 0))
        return sizes, marks, is_fd, good & (is_remote | (have >= sizes))

    def _is(self, cells: Cells, role: str) -> Flags:
        """Return where a column says yes: 1, true, yes, x, or extended and 29 of identifiers."""
        column = self._column(cells, role)
        if column is None:
            return np.zeros(len(cells), np.bool_)
        first, full = cells.at(column.start), column.sizes > 0
        found: Flags = full & (np.isin(first, list(_TRUE)) | ((first == ord("1")) & (column.sizes == 1)))
        return found

    def _is_sent(self, cells: Cells) -> Flags:
        column = self._column(cells, "direction")
        if column is None:
            return np.zeros(len(cells), np.bool_)
        found: Flags = (column.sizes > 0) & np.isin(cells.at(column.start), list(_SENT + b"1"))
        return found

    def _channels(self, cells: Cells) -> tuple[list[str], Ints, Flags]:
        """Return the names of channels, the place of each frame's there, and which may be."""
        column = self._column(cells, "bus")
        if column is None:
            return [_ONLY_NAME], np.zeros(len(cells), np.int64), np.ones(len(cells), np.bool_)
        good = column.sizes <= _NAME_CHARS
        longest = int(column.sizes[good].max()) if good.any() else 0
        places = np.arange(longest // 8 * 8 + 8)
        octets = np.where(places < column.sizes[:, None], cells.at(column.start[:, None] + places), 0)
        words = np.where(good[:, None], octets, 0).astype(np.uint8).view(np.uint64)
        one = words[:, 0] if words.shape[1] == 1 else words
        _, first, channel = np.unique(one, axis=0, return_index=True, return_inverse=True)
        texts = [words[at].tobytes().rstrip(b"\0").decode(errors="replace") for at in first.tolist()]
        return [self._name(text) for text in texts], channel.reshape(-1).astype(np.int64), good

    def _name(self, text: str) -> str:
        if not (text.isascii() and text.isdigit()):
            return text or _ONLY_NAME
        return f"can{max(0, int(text) - self._heading.first_bus)}"


def _size(code: Ints, have: Ints) -> Ints:
    """Return lengths by length codes, or by lengths that are called so, and by the bytes that there are."""
    long = _SIZE_OF_CODE[np.clip(code, 0, len(FD_SIZES) - 1)]
    is_code = code < len(FD_SIZES)
    as_size = np.where(is_code & (have == CLASSIC_DATA), CLASSIC_DATA, code)
    found: Ints = np.where(code <= CLASSIC_DATA, code, np.where(is_code & (have >= long), long, as_size))
    return found


def _nothing() -> Frames:
    none = np.zeros(0, np.uint8)
    flags = none.astype(np.bool_)
    ints = none.astype(np.int64)
    return Frames(ints, ints, flags, none.astype(np.uint32), none, none, flags, none.reshape(0, 8), [])


class Writer:
    """A writer of tables as SavvyCAN has them."""

    def __init__(self, file: BinaryIO, style: dict[str, Any]) -> None:
        self._file, self._numbers, self._is_begun = file, Numbers(), False

    def add(self, frames: Frames) -> None:
        """Write frames."""
        if not self._is_begun:
            self._file.write(_HEADING.encode())
            self._is_begun = True
        frames = replace(frames, data=frames.data[:, :CLASSIC_DATA])
        self._file.write("".join(self._lines(frames)).encode())

    def close(self) -> None:
        """Do nothing: the table has no end of its own."""

    def _lines(self, frames: Frames) -> Iterator[str]:
        buses = [self._numbers.of(name) - 1 for name in frames.names]
        text = frames.data.tobytes().hex(",").upper()
        columns = (column.tolist() for column in frames.columns[:5])
        for at, (ts_ns, channel, is_sent, identifier, size) in enumerate(zip(*columns, strict=True)):
            wide, way = "true" if identifier & EXTENDED else "false", "Tx" if is_sent else "Rx"
            head = f"{ts_ns // 1000},{identifier & IDENTIFIER:08X},{wide},{way},{buses[channel]},{size}"
            yield f"{head},{text[at * 24 : at * 24 + 23]},\n"
