"""Records of MDF 4: taken apart from their bytes, many at a time, and the numbers in them. Pure; needs numpy.

Source: ASAM MDF 4.1. Records of one sort have one size; those of several sorts in one data group begin with
a number each. Values with a length of their own (VLSD) are a sort of records too, or in blocks of theirs.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from capture.formats.mdf_blocks import Channel, DataGroup, Group
from capture.formats.source import LeftOut

Octets = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
VALUE_BYTES: Final = 64
"""The most bytes that are kept of a value with a length of its own."""
_WAITING_MAX: Final = 1 << 20
_WINDOW_BYTES_MAX: Final = 1 << 28
_RECORD_BYTES_MAX: Final = 1 << 20
_LOOK_MAX: Final = 1 << 16
_REALS: Final = {(4, 64): "<f8", (4, 32): "<f4", (5, 64): ">f8", (5, 32): ">f4"}
_MOTOROLA: Final = (1, 3)
_LOST: Final = "frames whose data are missing"


class Values(NamedTuple):
    """Values with a length of their own: `data` has 64 columns, with zeros behind each."""

    sizes: Ints
    data: Octets


class Records(NamedTuple):
    """Records of a group, with their places in the data, and values of theirs that stand elsewhere."""

    group: Group
    places: Ints
    rows: Octets
    values: Values | None


def ints(rows: Octets, channel: Channel) -> Ints:
    """Return a channel's raw numbers, zeros if it has none or is no number of up to 64 bits."""
    size = (channel.bit + channel.bits + 7) // 8
    if not 0 < size <= 8 or channel.byte + size > rows.shape[1]:
        return np.zeros(len(rows), np.int64)
    wide = np.zeros((len(rows), 8), np.uint8)
    octets = rows[:, channel.byte : channel.byte + size]
    wide[:, :size] = octets[:, ::-1] if channel.form in _MOTOROLA else octets
    words = wide.view("<u8").ravel() >> np.uint64(channel.bit)
    return (words & np.uint64((1 << channel.bits) - 1)).astype(np.int64)


def times_ns(rows: Octets, channel: Channel | None) -> Ints:
    """Return the times in ns of a channel that counts s; zeros without one."""
    if channel is None:
        return np.zeros(len(rows), np.int64)
    real = _REALS.get((channel.form, channel.bits))
    if real:
        raw = np.ascontiguousarray(rows[:, channel.byte : channel.byte + channel.bits // 8])
        fits = raw.shape[1] == channel.bits // 8
        seconds = raw.view(real).ravel() if fits else np.zeros(len(rows))
        return _whole(seconds * channel.factor + channel.offset)
    counted, step_ns = ints(rows, channel), channel.factor * 1e9
    if step_ns and abs(step_ns - round(step_ns)) < 1e-6 * abs(step_ns):
        return counted * round(step_ns) + round(channel.offset * 1e9)
    return _whole(counted * channel.factor + channel.offset)


def _whole(seconds: npt.NDArray[Any]) -> Ints:
    bounded = np.clip(np.nan_to_num(seconds), -4e9, 4e9)
    whole: Ints = np.round(bounded * 1e9).astype(np.int64)
    return whole


def equal(pieces: Iterator[bytes], group: Group) -> Iterator[Octets]:
    """Yield the records of data that have one sort only. One that is cut off is left out."""
    held = b""
    for piece in pieces if group.size else ():
        held += piece
        count = len(held) // group.size
        if count:
            yield np.frombuffer(held, np.uint8, count * group.size).reshape(count, group.size)
            held = held[count * group.size :]


class Window:
    """Values in blocks of their own, by their places, which do not go back: a batch lets go of the rest."""

    def __init__(self, pieces: Iterator[bytes], told: LeftOut) -> None:
        self._pieces, self._told, self._held, self._begin = pieces, told, b"", 0

    def take(self, places: Ints) -> tuple[npt.NDArray[np.bool_], Values]:
        """Return which places have a value, and these values."""
        self._fill(int(places.max()) + 4 + VALUE_BYTES)
        octets, at = np.frombuffer(self._held + bytes(4 + VALUE_BYTES), np.uint8), places - self._begin
        good = (at >= 0) & (at + 4 <= len(self._held))
        at = at[good]
        sizes = octets[at[:, None] + np.arange(4)].copy().view("<u4").ravel().astype(np.int64)
        whole = at + 4 + np.minimum(sizes, VALUE_BYTES) <= len(self._held)
        good[good] = whole
        at, sizes = at[whole], np.minimum(sizes[whole], VALUE_BYTES)
        data = octets[at[:, None] + np.arange(4, 4 + VALUE_BYTES)]
        data[np.arange(VALUE_BYTES) >= sizes[:, None]] = 0
        self._told.leave(_LOST, int((~good).sum()))
        self._drop(int(places.max()))
        return good, Values(sizes, data)

    def _fill(self, end: int) -> None:
        parts, have = [self._held], self._begin + len(self._held)
        while have < min(end, self._begin + _WINDOW_BYTES_MAX) and (piece := next(self._pieces, b"")):
            parts.append(piece)
            have += len(piece)
        self._held = b"".join(parts)

    def _drop(self, place: int) -> None:
        begin = max(self._begin, min(place, self._begin + len(self._held)))
        self._held, self._begin = self._held[begin - self._begin :], begin


class Mixed:
    """Records of several sorts, each behind its number. `wants` names a channel whose values are used.

    A value with a length of its own belongs to the record of the same rank in its group.
    """

    def __init__(self, data: DataGroup, wants: dict[int, Channel], told: LeftOut) -> None:
        self._id_bytes, self._told = data.id_bytes, told
        self._groups = {one.number: one for one in data.groups}
        by_place = {one.place: one.number for one in data.groups if one.is_vlsd}
        self._values_of = {
            number: by_place[channel.signal]
            for number, channel in wants.items()
            if channel.signal in by_place
        }
        self._values = {number: deque[bytes]() for number in self._values_of.values()}
        self._waiting: dict[int, list[tuple[Ints, Octets]]] = {}
        self._held, self._begin, self._look, self._is_good = b"", 0, 4, True

    def feed(self, piece: bytes) -> Iterator[Records]:
        """Take a piece, and yield the records of it that are whole, group by group."""
        data = self._held + piece
        at, found = self._apart(data)
        self._held, self._begin = data[at:], self._begin + at
        for number in {*found, *self._waiting}:
            yield from self._matched(number, self._waiting.pop(number, []) + found.get(number, []))

    def _apart(self, data: bytes) -> tuple[int, dict[int, list[tuple[Ints, Octets]]]]:
        octets, at = np.frombuffer(data, np.uint8), 0 if self._is_good else len(data)
        found: dict[int, list[tuple[Ints, Octets]]] = {}
        while at + self._id_bytes <= len(data):
            head = data[at : at + self._id_bytes]
            group = self._groups.get(int.from_bytes(head, "little"))
            if group is None or (
                group.is_vlsd and _value_bytes(data, at + self._id_bytes) > _RECORD_BYTES_MAX
            ):
                self._told.leave("rest behind a damaged record", int(self._is_good))
                self._is_good = False
                return len(data), found
            size = self._value(data, at, group) if group.is_vlsd else 0
            if not group.is_vlsd:
                count = self._run(octets, at, group, head)
                size = count * (self._id_bytes + group.size)
                if count:
                    rows = octets[at : at + size].reshape(count, -1)[:, self._id_bytes :]
                    places = self._begin + at + np.arange(count, dtype=np.int64) * (size // count)
                    found.setdefault(group.number, []).append((places, rows))
            if not size:
                break
            at += size
        return at, found

    def _run(self, octets: Octets, at: int, group: Group, head: bytes) -> int:
        """Return the number of whole records of one sort from there on, as far as it looks."""
        stride = self._id_bytes + group.size
        look = min((len(octets) - at) // stride, self._look)
        heads = octets[at : at + look * stride].reshape(look, stride)[:, : self._id_bytes]
        same = (heads == np.frombuffer(head, np.uint8)).all(axis=1)
        count = look if same.all() else int(same.argmin())
        self._look = min(_LOOK_MAX, max(4, 2 * count))
        return count

    def _value(self, data: bytes, at: int, group: Group) -> int:
        """Keep the value there. Return the bytes of its record, 0 if it is not there as a whole."""
        begin = at + self._id_bytes + 4
        size = _value_bytes(data, at + self._id_bytes)
        if begin > len(data) or begin + size > len(data):
            return 0
        values = self._values.get(group.number)
        if values is not None and len(values) < _WAITING_MAX:
            values.append(data[begin : begin + min(size, VALUE_BYTES)])
        return begin + size - at

    def _matched(self, number: int, parts: list[tuple[Ints, Octets]]) -> Iterator[Records]:
        if not parts:
            return
        places, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
        group, source = self._groups.get(number), self._values_of.get(number)
        if source is None or group is None:
            if group is not None:
                yield Records(group, places, rows, None)
            return
        values = self._values[source]
        count = min(len(values), len(rows))
        if count:
            taken = [values.popleft() for _ in range(count)]
            yield Records(group, places[:count], rows[:count], _together(taken))
        if count < len(rows) < _WAITING_MAX:
            self._waiting[number] = [(places[count:], rows[count:])]

    def end(self) -> None:
        """Count what was left: the records whose values never came."""
        self._told.leave(_LOST, sum(len(one) for parts in self._waiting.values() for _, one in parts))


def _value_bytes(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _together(values: list[bytes]) -> Values:
    sizes = np.array([len(one) for one in values], np.int64)
    octets = np.frombuffer(b"".join(one.ljust(VALUE_BYTES, b"\0") for one in values), np.uint8)
    return Values(sizes, octets.reshape(-1, VALUE_BYTES))
