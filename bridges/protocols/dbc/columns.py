"""The signals in many CAN frames at once, as columns: what `compiled` reads of one frame. Pure, with numpy.

Frames are grouped by identifier, and `series` reads each signal of a group.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from bridges.items import STANDARD_MAX
from bridges.protocols.dbc.compiled import compile_message
from bridges.protocols.dbc.index import Index
from bridges.protocols.dbc.j1939.joining import Joiner
from bridges.protocols.dbc.layout import Message
from bridges.protocols.dbc.series import PAD, Array, Frames, Part, Series, grouped

_KNOWN_MAX: Final = 8192  # identifiers: J1939 has one for each priority, source and destination
_NONE: Final = 0  # the code of frames that no message has
_PART: Final = 1  # and of those that are parts of a long message
_FIRST: Final = 2  # and of the first message


class Decoded(NamedTuple):
    """The series in a batch of frames. `foreign`: frames of no message; `short`: frames with fewer data than
    their message has; `unknown`: selectors with a value that has no signals."""

    series: list[Series]
    foreign: int
    short: int
    unknown: int


class Decoder:
    """A decoder of frames by the messages of a database. With `of_wholes`, of long messages that were joined
    and are as one frame each."""

    def __init__(self, messages: Iterable[Message], of_wholes: bool = False) -> None:
        messages = list(messages)
        self._index = Index(messages)
        self._wholes = None if of_wholes or not self._index.has_j1939 else Decoder(messages, of_wholes=True)
        self._forget()

    def _forget(self) -> None:
        self._messages = list[tuple[int, Message]]()
        self._standard = np.full(STANDARD_MAX + 1, -1, np.int32)
        self._wide = dict[int, int]()
        self._sorted = np.empty(0, np.uint32), np.empty(0, np.int32)

    def decode(self, frames: Frames, ts_ns: Array | None = None, joiner: Joiner | None = None) -> Decoded:
        """Return the values of all signals in a batch of frames.

        With a `joiner` and the times of frames, also those of long messages: at the row of the last part.
        """
        codes = self._codes(frames.identifiers)
        series, counts = list[Series](), [0, 0]
        groups = dict(grouped(codes, len(self._messages) + _FIRST))
        foreign = groups.pop(_NONE, codes[:0])
        parts = groups.pop(_PART, None)
        for code, rows in groups.items():
            identifier, message = self._messages[code - _FIRST]
            part = Part(frames, rows, message, identifier & 0xFF if message.is_j1939 else None, counts)
            series += part.series(compile_message(message).groups[0], None)
        if joiner is not None and ts_ns is not None and parts is not None:
            series += self._joined(frames, parts, ts_ns[parts] / 1e9, joiner)
        return Decoded(series, len(foreign), *counts)

    def _joined(self, frames: Frames, parts: Array, times_s: Array, joiner: Joiner) -> list[Series]:
        """Return the values of the long messages that these rows of parts complete."""
        found = list(_wholes(frames, parts, times_s, joiner))
        if not found or self._wholes is None:
            return []
        last = np.array([row for row, _, _ in found], np.int64)
        whole = _framed([(identifier, data) for _, identifier, data in found])
        return [one._replace(rows=last[one.rows]) for one in self._wholes.decode(whole).series]

    def knows(self, identifiers: Array) -> Array:
        """Return which identifiers, with their top bits, a message has, or a part of a long one."""
        return self._codes(identifiers) > _NONE

    def _codes(self, identifiers: Array) -> Array:
        """Return a small number for each identifier: `_NONE` for one that no message has."""
        codes = self._looked_up(identifiers)
        if len(new := np.unique(identifiers[codes < 0])):
            if len(self._wide) + len(new) > _KNOWN_MAX:
                self._forget()
                new = np.unique(identifiers)
            self._learn(new.tolist())
            codes = self._looked_up(identifiers)
        return codes

    def _looked_up(self, identifiers: Array) -> Array:
        """Return codes, and -1 for identifiers that were not looked up before."""
        is_wide = identifiers > STANDARD_MAX
        if not is_wide.any():
            return self._standard[identifiers]
        codes = self._standard[np.where(is_wide, 0, identifiers)]
        keys, values = self._sorted
        wanted = identifiers[is_wide]
        if not len(keys):
            codes[is_wide] = -1
            return codes
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        codes[is_wide] = np.where(keys[places] == wanted, values[places], -1)
        return codes

    def _learn(self, identifiers: Sequence[int]) -> None:
        for identifier in identifiers:
            message, code = self._index.find(identifier), _NONE
            if self._wholes is not None and self._index.has_part(identifier):
                code = _PART
            elif message is not None:
                code = _FIRST + len(self._messages)
                self._messages.append((identifier, message))
            if identifier > STANDARD_MAX:
                self._wide[identifier] = code
            else:
                self._standard[identifier] = code
        known = sorted(self._wide.items())
        self._sorted = (
            np.array([one for one, _ in known], np.uint32),
            np.array([code for _, code in known], np.int32),
        )


def _wholes(frames: Frames, rows: Array, times_s: Array, joiner: Joiner) -> Iterator[tuple[int, int, bytes]]:
    """Yield the row of the last part, the identifier and the data of each message that is complete."""
    octets = frames.data.data
    columns = (rows, frames.identifiers[rows], frames.starts[rows], frames.sizes[rows], times_s)
    for row, identifier, start, size, now_s in zip(*(one.tolist() for one in columns), strict=True):
        whole = joiner.take(identifier, bytes(octets[start : start + size]), now_s)
        if whole is not None:
            yield row, *whole


def _framed(messages: Sequence[tuple[int, bytes]]) -> Frames:
    """Return messages as frames."""
    sizes = np.array([len(data) for _, data in messages], np.int64)
    octets = np.frombuffer(b"".join(data for _, data in messages) + bytes(PAD), np.uint8)
    identifiers = np.array([identifier for identifier, _ in messages], np.uint32)
    return Frames(identifiers, np.cumsum(sizes) - sizes, sizes, octets)
