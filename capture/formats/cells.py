"""The cells of a block of text, many at a time: numbers, and bytes in hex, decimal or base64. Needs numpy.

Pure. A place is a number in the block. Each column of cells is two lists of places: of beginnings and ends.
"""

from typing import Final, NamedTuple

import numpy as np

from capture.frames import CLASSIC_DATA, FD_DATA, Flags, Ints, Octets

HEX: Final = np.full(256, 255, np.uint8)
"""The value of each digit in hex, 255 for other chars."""
for _number, _digit in enumerate(b"0123456789ABCDEF"):
    HEX[_digit] = _number
for _number, _digit in enumerate(b"abcdef", 10):
    HEX[_digit] = _number
DECIMAL: Final = np.where(HEX < 10, HEX, 255)
"""The value of each decimal digit, 255 for other chars."""
_BASE64: Final = np.full(256, 255, np.uint8)
for _number, _digit in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):
    _BASE64[_digit] = _number
_BETWEEN: Final = np.isin(np.arange(256), list(b" \t-:._,;|'\"[]{}"))  # chars that may stand between bytes
_BLANKS: Final = 32
_STEPS: Final = 3  # chars a byte, with one between
_NIBBLE: Final = np.uint8(4)
_DECIMAL_DIGITS: Final = 3


class Column(NamedTuple):
    """Cells, one a line."""

    start: Ints
    end: Ints

    @property
    def sizes(self) -> Ints:
        return self.end - self.start


class Bytes(NamedTuple):
    """The bytes in cells: all of them, how many each cell has, and which cells have nothing else."""

    octets: Octets
    counts: Ints
    good: Flags


def numbers(octets: Octets, cells: Column, width: int, table: Octets, base: int) -> tuple[Ints, Flags]:
    """Return the numbers of 1 to `width` digits in cells, and which cells are some."""
    start, end = cells
    value = np.zeros(len(start), np.int64)
    sizes = cells.sizes
    good = (sizes > 0) & (sizes <= width)
    widest = int(sizes[good].max()) if good.any() else 0
    for place in range(widest):
        at = end - widest + place
        there = at >= start
        digit = table[octets[np.where(there, at, 0)]]
        good &= ~there | (digit < base)
        value = value * base + np.where(there, digit, 0)
    return value, good


class Cells:
    """The cells of the lines of a block that are not empty."""

    def __init__(self, block: bytes, delimiter: bytes) -> None:
        self.block, self.octets = block, np.frombuffer(block, np.uint8)
        is_end = self.octets == 10
        is_mark = is_end | (self.octets == delimiter[0])
        if b'"' in block:
            is_mark &= is_end | ~self._quoted(is_end)
        self._marks = np.flatnonzero(is_mark)
        last = np.flatnonzero(is_end[self._marks])
        first = np.concatenate([[0], last[:-1] + 1])
        ends = self._marks[last]
        starts = np.concatenate([[0], ends[:-1] + 1])
        ends = ends - (self.octets[ends - 1] == 13)
        full = ends > starts
        self._first, self._last, self.starts, self.ends = first[full], last[full], starts[full], ends[full]
        self._is_padded = b" " in block or b'"' in block

    def __len__(self) -> int:
        return len(self.starts)

    def _quoted(self, is_end: Flags) -> Flags:
        """Return which chars are between quotes of their line."""
        count = np.cumsum(self.octets == ord('"'))
        ends = np.flatnonzero(is_end)
        before = np.concatenate([[0], count[ends[:-1]]])
        lengths = np.diff(np.concatenate([[-1], ends]))
        found: Flags = (count[: ends[-1] + 1] - np.repeat(before, lengths)) % 2 == 1
        return found

    @property
    def last_marks(self) -> Ints:
        """The places that part the last cell of each line from the one before; of one cell, its end."""
        found: Ints = np.where(self._last > self._first, self._marks[self._last - 1], self.ends)
        return found

    def column(self, number: int) -> Column:
        """Return a column, without blanks and quotes around its cells. Those of too short lines are empty."""
        at = self._first + number
        there = at <= self._last
        start = self._marks[np.minimum(at, self._last) - 1] + 1 if number else self.starts
        end = np.minimum(self._marks[np.minimum(at, self._last)], self.ends)
        start, end = np.where(there, start, self.ends), np.where(there, end, self.ends)
        return self._stripped(np.minimum(start, end), end) if self._is_padded else Column(start, end)

    def _stripped(self, start: Ints, end: Ints) -> Column:
        for _ in range(_BLANKS):
            here = (start < end) & np.isin(self.at(start), (32, 34))
            behind = (start + here < end) & np.isin(self.at(end - 1), (32, 34))
            if not (here.any() or behind.any()):
                break
            start, end = start + here, end - behind
        return Column(start, end)

    def at(self, places: Ints) -> Octets:
        """Return the chars at places."""
        return self.octets[np.minimum(places, len(self.octets) - 1)]

    def first(self, chars: bytes, cells: Column) -> Ints:
        """Return the place of the first of some chars in each cell, its end if there is none."""
        is_one = self.octets == chars[0]
        for char in chars[1:]:
            is_one |= self.octets == char
        places = np.append(np.flatnonzero(is_one), len(self.octets))
        found: Ints = np.minimum(places[np.searchsorted(places, cells.start)], cells.end)
        return found

    def text(self, cells: Column, at: int) -> str:
        """Return one cell."""
        return self.block[cells.start[at] : cells.end[at]].decode("latin-1")

    def line(self, at: int) -> bytes:
        """Return one line."""
        return self.block[self.starts[at] : self.ends[at]]

    def _inside(self, cells: Column) -> Ints:
        """Return the places in cells."""
        steps = np.zeros(len(self.octets) + 1, np.int8)
        full = cells.end > cells.start
        steps[cells.start[full]] = 1
        steps[cells.end[full]] = -1
        return np.flatnonzero(np.cumsum(steps, dtype=np.int8))

    def in_text(self, cells: Column, base: int) -> Bytes:
        """Return the bytes that cells have in digits, with something between them or, in hex, without."""
        if base == 16 and (found := self._in_steps(cells)) is not None:
            return found
        places, octets = self._inside(cells), self.octets
        chars = octets[places]
        digits = (HEX if base == 16 else DECIMAL)[chars]
        is_digit = digits < base
        foreign = places[~(is_digit | _BETWEEN[chars])]
        if len(foreign):
            is_cross = ((octets[foreign] | 32) == ord("x")) & (octets[foreign - 1] == ord("0"))
            is_digit[np.searchsorted(places, foreign[is_cross] - 1)] = False
            foreign = foreign[~is_cross]
        at, values, odd = (_of_hex if base == 16 else _of_decimal)(places[is_digit], digits[is_digit])
        wrong = np.sort(np.concatenate([odd, foreign]))
        return Bytes(values, _within(at, cells), _within(wrong, cells) == 0)

    def _in_steps(self, cells: Column) -> Bytes | None:
        """Return the bytes of cells with up to 8, all with one char between them or all without; or None.

        Most tables are such ones, and this takes half the time.
        """
        sizes = cells.sizes
        longest = int(np.argmax(sizes)) if len(sizes) else 0
        if not len(sizes) or sizes[longest] > _STEPS * CLASSIC_DATA:
            return None
        step = 3 if _BETWEEN[self.at(cells.start[longest : longest + 1] + 2)][0] else 2
        counts = (sizes + step - 2) // step
        at = cells.start[:, None] + np.arange(int(counts.max())) * step
        there = np.arange(at.shape[1]) < counts[:, None]
        high, low = HEX[self.at(at)], HEX[self.at(at + 1)]
        good = ((high | low) < 16) | ~there
        good[:, 1:] &= _BETWEEN[self.at(at[:, 1:] - 1)] | ~there[:, 1:] | np.bool_(step == 2)
        if not good.all() or (counts * step - (step - 2) * (counts > 0) != sizes).any():
            return None
        return Bytes((high << _NIBBLE | low)[there], counts, np.ones(len(sizes), np.bool_))

    def in_base64(self, cells: Column) -> Bytes:
        """Return the bytes that cells have in base64."""
        places, sizes = self._inside(cells), cells.sizes
        digits = _BASE64[self.octets[places]]
        pads = self._pads(cells)
        good = (sizes % 4 == 0) & (_within(places[digits > 63], cells) == pads)
        kept = np.repeat(good, sizes)
        four = (digits[kept] & 63).reshape(-1, 4)
        three = four[:, :3] << np.array([2, 4, 6], np.uint8) | four[:, 1:] >> np.array([4, 2, 0], np.uint8)
        whole, pads = np.where(good, sizes, 0) // 4 * 3, np.where(good, pads, 0)
        ends = np.cumsum(whole)
        is_byte = np.ones(three.size, np.bool_)
        is_byte[ends[pads > 0] - 1] = False
        is_byte[ends[pads > 1] - 2] = False
        return Bytes(three.reshape(-1)[is_byte], whole - pads, good)

    def _pads(self, cells: Column) -> Ints:
        """Return how many chars fill up each cell, at most 2."""
        last, other = (self.at(np.maximum(cells.end - back, 0)) == ord("=") for back in (1, 2))
        return np.where((cells.sizes > 1) & last, 1 + other.astype(np.int64), 0)


def _within(places: Ints, cells: Column) -> Ints:
    """Return how many places are in each cell."""
    if not len(places):
        return np.zeros(len(cells.start), np.int64)
    return np.searchsorted(places, cells.end) - np.searchsorted(places, cells.start)


def _of_hex(places: Ints, digits: Octets) -> tuple[Ints, Octets, Ints]:
    """Return where bytes are, which, and where a digit has no other. A digit that stands alone is a byte."""
    starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    if len(places) % 2 == 0 and not (starts % 2).any():
        return places[::2], digits[::2] << _NIBBLE | digits[1::2], places[:0]
    sizes = np.diff(np.append(starts, len(places)))
    order = np.arange(len(places)) - np.repeat(starts, sizes)
    high = np.flatnonzero(order % 2 == 0)
    paired = np.append(order, 0)[high + 1] > 0
    low = digits[np.minimum(high + 1, len(digits) - 1)]
    values = np.where(paired, digits[high] << _NIBBLE | low, digits[high])
    return places[high], values, places[high[~paired & (order[high] > 0)]]


def _of_decimal(places: Ints, digits: Octets) -> tuple[Ints, Octets, Ints]:
    """Return where bytes of up to three digits are, which, and where there are none."""
    starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    sizes = np.diff(np.append(starts, len(places)))
    values = np.zeros(len(starts), np.int64)
    for place in range(_DECIMAL_DIGITS):
        there = sizes > place
        digit = digits[np.minimum(starts + place, max(len(digits) - 1, 0))]
        values = np.where(there, values * 10 + digit, values)
    odd = (sizes > _DECIMAL_DIGITS) | (values > 255)
    return places[starts], values.astype(np.uint8), places[starts[odd]]


def matrix(found: Bytes, sizes: Ints) -> Octets:
    """Return bytes in rows of 8 or 64, with zeros behind the size of each."""
    width = FD_DATA if len(sizes) and sizes.max() > CLASSIC_DATA else CLASSIC_DATA
    data = np.zeros((len(sizes), width), np.uint8)
    if len(sizes) and (found.counts == found.counts[0]).all():
        rows = found.octets.reshape(len(sizes), -1)[:, :width]
        data[:, : rows.shape[1]] = rows
        data[np.arange(width) >= sizes[:, None]] = 0
        return data
    row = np.repeat(np.arange(len(sizes)), found.counts)
    place = np.arange(len(found.octets)) - np.repeat(np.cumsum(found.counts) - found.counts, found.counts)
    kept = place < np.minimum(sizes, width)[row]
    data[row[kept], place[kept]] = found.octets[kept]
    return data
