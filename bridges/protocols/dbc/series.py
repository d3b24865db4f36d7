"""The values of the signals in many frames of one message, by operations on whole columns. Pure, with numpy.

Values are doubles: those of `values.number`, to the bit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bridges.protocols.dbc.compiled import Group
from bridges.protocols.dbc.layout import Message, Signal

PAD: Final = 8
"""Bytes behind the data of the last frame, so that a word that begins in a frame is in the buffer."""
_EXACT_BITS: Final = 53  # of the integers that a double has
_WORD: Final = 64
_UNKNOWN: Final = 0  # the code of a selector's numbers that choose nothing
_TABLE_MAX: Final = 4096  # numbers between the least and the greatest choice, in a table
_FLOATS: Final = {16: (np.uint16, np.float16), 32: (np.uint32, np.float32), 64: (np.uint64, np.float64)}
Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


class Frames(NamedTuple):
    """CAN frames: `identifiers` with top bits (u32), and the data of frame n: `sizes[n]` bytes of `data` from
    `starts[n]` on. Behind the last of them `data` has `PAD` more bytes."""

    identifiers: Array
    starts: Array
    sizes: Array
    data: Array


class Series(NamedTuple):
    """The values of one signal: `rows` are the numbers of the frames, `values` doubles.

    `source`: of a message of J1939, else None. `texts` has the place in `texts_of(signal)` of the text that
    stands for a value, -1 for none; it is None if no value has a text.
    """

    message: Message
    signal: Signal
    source: int | None
    rows: Array
    values: Doubles
    texts: Array | None


@lru_cache(maxsize=8192)
def _texts_of(choices: tuple[tuple[int, str], ...]) -> tuple[str, ...]:
    return tuple(text for _, text in choices)


def texts_of(signal: Signal) -> tuple[str, ...]:
    """Return the texts that stand for values of a signal, in the order of their raw numbers."""
    return _texts_of(tuple(sorted(signal.choices.items())))


def grouped(codes: Array, count: int) -> Iterator[tuple[int, Array]]:
    """Yield each code below `count` that is there, with its places, in order."""
    if not len(codes):
        return
    narrow = codes.astype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=count))
    first = 0
    for code, end in enumerate(ends.tolist()):
        if end > first:
            yield code, order[first:end]
        first = end


@dataclass
class Part:
    """The frames of one message. `counts` are those of short frames and of unknown selectors."""

    frames: Frames
    rows: Array
    message: Message
    source: int | None
    counts: list[int]

    def __post_init__(self) -> None:
        self.starts, self.sizes = self.frames.starts[self.rows], self.frames.sizes[self.rows]
        short = int((self.sizes < self.message.size).sum())
        self.counts[0] += short
        self.is_whole = not short
        self._words = dict[tuple[str, int], Array]()

    def series(self, group: Group, some: Array | None) -> Iterator[Series]:
        """Yield the series of a group and of those below it. `some`: the frames that have it, all if None."""
        places = {place for place, _ in group.choosers}
        raws = dict[int, tuple[Array, Array | None]]()
        for place, signal in enumerate(group.signals):
            raw, there = self._raw(group, place, some), self._there(group, place, some)
            if there is not None:
                raw = raw[there]
            if place in places:
                raws[place] = raw, _chosen(some, there)
            yield self._made(signal, raw, _chosen(some, there))
        for place, groups in group.choosers:
            yield from self._below(group.signals[place], groups, *raws[place])

    def _below(
        self, selector: Signal, groups: Mapping[int, Group], raw: Array, some: Array | None
    ) -> Iterator[Series]:
        """Yield the series of the groups that a selector chooses."""
        made = list({group.index: group for group in groups.values()}.values())
        codes = {group.index: code for code, group in enumerate(made, 1)}
        table = {number: codes[group.index] for number, group in groups.items()}
        found = _looked_up(table, _numbers(selector, raw), _UNKNOWN)
        for code, places in grouped(found, len(made) + 1):
            if code == _UNKNOWN:
                self.counts[1] += len(places)
            else:
                yield from self.series(made[code - 1], places if some is None else some[places])

    def _there(self, group: Group, place: int, some: Array | None) -> Array | None:
        """Return which frames are long enough for a signal, as a mask; None if all are."""
        if self.is_whole:
            return None
        sizes = self.sizes if some is None else self.sizes[some]
        found = group.ends[place] <= 8 * sizes
        return None if found.all() else found

    def _made(self, signal: Signal, raw: Array, some: Array | None) -> Series:
        rows = self.rows if some is None else self.rows[some]
        if self.source is not None:
            error, _, end = self.message.absent(signal)
            if error < 1 << signal.bits:
                plain = _unsigned(raw, signal.bits)
                known = plain < error
                if end < 1 << min(signal.bits, _WORD - 1):  # of 64 bits, negative ones are less
                    known |= plain >= end
                raw, rows = raw[known], rows[known]
        return Series(self.message, signal, self.source, rows, values(signal, raw), _texts(signal, raw))

    def _raw(self, group: Group, place: int, some: Array | None) -> Array:
        """Return the raw numbers of a signal: int64, uint64, or Python's integers if they have more bits."""
        order, shift, _, half = group.fields[place]
        bits, size = group.signals[place].bits, self.message.size
        low = 8 * size - shift - bits if order == "b" else shift  # of its first byte, from the left
        first, last = low // 8, (low + bits - 1) // 8
        if size <= PAD:
            first, last = 0, size - 1
        count = last - first + 1
        if count > PAD:
            return self._wide(order, first, count, shift, bits, half, some)
        bit = shift - 8 * first if order == "l" else shift - 8 * (size - 1 - last) + _WORD - 8 * count
        word = self._word(order, first)
        return _cut(word if some is None else word[some], bit, bits, bool(half))

    def _word(self, order: str, first: int) -> Array:
        """Return the 8 bytes of each frame from `first` on, as a number."""
        found = self._words.get((order, first))
        if found is None:
            data = self.frames.data
            kind = "<u8" if order == "l" else ">u8"
            every: Array = np.ndarray(len(data) - PAD + 1, kind, data, strides=(1,))
            at = self.starts + first if self.is_whole else np.minimum(self.starts + first, len(every) - 1)
            found = every[at].astype(np.uint64, copy=False)
            self._words[order, first] = found
        return found

    def _wide(
        self, order: str, first: int, count: int, shift: int, bits: int, half: int, some: Array | None
    ) -> Array:
        """Return raw numbers that are in more than 8 bytes, as Python's integers."""
        data, starts = self.frames.data.tobytes(), self.starts if some is None else self.starts[some]
        right = shift - 8 * first if order == "l" else shift - 8 * (self.message.size - first - count)
        name, mask = "little" if order == "l" else "big", (1 << bits) - 1
        found = np.empty(len(starts), object)
        for place, start in enumerate(starts.tolist()):
            piece = data[start + first : start + first + count].ljust(count, b"\0")
            number = int.from_bytes(piece, name) >> right & mask  # type: ignore[arg-type]
            found[place] = (number ^ half) - half if half else number
        if bits <= _WORD:
            return found.astype(np.int64 if half else np.uint64)
        return found


def _chosen(some: Array | None, there: Array | None) -> Array | None:
    """Return the numbers of frames that are both among `some` and `there`; None for all."""
    if there is None:
        return some
    return np.flatnonzero(there) if some is None else some[there]


def _cut(word: Array, bit: int, bits: int, is_signed: bool) -> Array:
    """Return `bits` bits of words from `bit` on."""
    if is_signed:
        return (word << np.uint64(_WORD - bit - bits)).view(np.int64) >> np.int64(_WORD - bits)
    found = word >> np.uint64(bit) if bit else word
    if bits < _WORD:
        found = (found & np.uint64((1 << bits) - 1)).view(np.int64)
    return found


def _unsigned(raw: Array, bits: int) -> Array:
    return raw & ((1 << bits) - 1) if bits < _WORD else raw


def values(signal: Signal, raw: Array) -> Doubles:
    """Return the numbers that raw numbers stand for, as doubles."""
    if signal.is_float:
        number = _floats(signal.bits, raw)
    elif not _is_exact(signal):
        return _rounded_once(signal, raw)
    else:
        number = raw.astype(np.float64)
    if not signal.is_plain:
        with np.errstate(all="ignore"):
            number *= float(signal.scale)
            number += float(signal.offset)
    return number


def _floats(bits: int, raw: Array) -> Doubles:
    whole, kind = _FLOATS[bits]
    with np.errstate(all="ignore"):  # a NaN may be a signalling one
        return raw.astype(whole).view(kind).astype(np.float64)


def _is_exact(signal: Signal) -> bool:
    """Return whether doubles give what Python's integers give, rounded once: `raw * scale + offset`."""
    if signal.bits > _WORD:
        return False
    if signal.is_plain or not isinstance(signal.scale, int):
        return True
    most = abs(signal.scale) << signal.bits
    if isinstance(signal.offset, int):
        most += abs(signal.offset)
    return most <= 1 << _EXACT_BITS


def _rounded_once(signal: Signal, raw: Array) -> Doubles:
    found: Doubles = (raw.astype(object) * signal.scale + signal.offset).astype(np.float64)
    return found


def _numbers(selector: Signal, raw: Array) -> Array:
    """Return the numbers by which a selector selects (`compiled.number_of`)."""
    if selector.is_plain or not len(raw):
        return raw
    scaled = np.trunc(raw.astype(np.float64) * selector.scale + selector.offset).astype(np.int64)
    named = _looked_up(dict.fromkeys(selector.choices, 1), raw, 0)
    return np.where(named > 0, raw.astype(np.int64), scaled)


def _texts(signal: Signal, raw: Array) -> Array | None:
    """Return the places of the texts that stand for raw numbers, -1 for none."""
    if not signal.choices:
        return None
    table = {number: place for place, number in enumerate(sorted(signal.choices))}
    if not signal.is_float:
        return _looked_up(table, raw, -1)
    number = _floats(signal.bits, raw)
    whole = np.isfinite(number) & (np.abs(number) < float(1 << _WORD - 1))
    found = _looked_up(table, np.where(whole, number, 0).astype(np.int64), -1)
    return np.where(whole, found, -1)


def _looked_up(table: Mapping[int, int], keys: Array, missing: int) -> Array:
    """Return the values of a table for integer keys, `missing` for others."""
    if keys.dtype == object:
        return np.array([table.get(key, missing) for key in keys.tolist()], np.int32)
    bounds = np.iinfo(keys.dtype)
    known = sorted(key for key in table if bounds.min <= key <= bounds.max)
    if not known or not len(keys):
        return np.full(len(keys), missing, np.int32)
    low, high = known[0], known[-1]
    numbers = np.array([table[key] for key in known], np.int32)
    if high - low < _TABLE_MAX:
        least, one = keys.dtype.type(low), keys.dtype.type(1)
        places = np.full(high - low + 2, missing, np.int32)
        places[np.array(known, keys.dtype) - least + one] = numbers
        inside = (keys >= low) & (keys <= high)
        found: Array = places[np.where(inside, keys - least + one, 0).astype(np.int64)]
        return found
    ordered = np.array(known, keys.dtype)
    at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.where(ordered[at] == keys, numbers[at], np.int32(missing))
