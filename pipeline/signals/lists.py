"""The columns of a batch as arrays of numpy: texts by number, bytes, lists of tokens. Pure, with Arrow."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridges.protocols.dbc.series import PAD
from pipeline.signals.databases import Tokens

Array = npt.NDArray[Any]
_FLAGS_MAX: Final = 0xFF  # the token behind the identifier of an FD frame
_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)


class Lists(NamedTuple):
    """The tokens of messages, from `starts` to `ends` in `values`. `counts` is 0 where there is no frame."""

    starts: Array
    ends: Array
    counts: Array
    values: Array

    @classmethod
    def of(cls, tokens: pa.ListArray) -> "Lists":
        offsets = tokens.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        values = tokens.values.to_numpy(zero_copy_only=False)
        return cls(offsets[:-1], offsets[1:], np.diff(offsets), values)

    def begin(self, root: Tokens) -> Array:
        """Return which messages begin with the tokens of `root`."""
        found = self.counts >= len(root)
        last = len(self.values) - 1
        for place, one in enumerate(root):
            found &= self.values[np.minimum(self.starts + place, last)] == one
        return found

    def are_frames(self, place: int) -> Array:
        """Return which messages may be CAN frames by what is behind a root of `place` tokens: an identifier,
        and flags of an FD frame or none."""
        last = len(self.values) - 1
        flags = self.values[np.minimum(self.starts + place + 1, last)] <= _FLAGS_MAX
        found: Array = (self.counts == place + 1) | ((self.counts == place + 2) & flags)
        return found

    def hashes(self, rows: Array) -> Array:
        """Return a number of 64 bits for the tokens of each of some messages."""
        starts, counts = self.starts[rows], self.counts[rows]
        found, last = counts.astype(np.uint64), len(self.values) - 1
        for place in range(int(counts.max(initial=0))):
            value = self.values[np.minimum(starts + place, last)].astype(np.uint64)
            mixed = (found ^ value) * _PRIME
            found = np.where(counts > place, mixed ^ mixed >> np.uint64(29), found)
        return found


def coded(column: pa.Array) -> tuple[Array, list[str]]:
    """Return a number for each text, and the texts."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def octets_of(data: pa.Array) -> tuple[Array, Array, Array]:
    """Return where data start, how long they are, and all bytes with `PAD` more."""
    offsets = np.frombuffer(data.buffers()[1], np.int32)[data.offset : data.offset + len(data) + 1]
    buffer = data.buffers()[2]
    octets = np.zeros(int(offsets[-1]) + PAD, np.uint8)
    if buffer is not None and offsets[-1]:
        octets[:-PAD] = np.frombuffer(buffer, np.uint8, int(offsets[-1]))
    starts = offsets.astype(np.int64)
    return starts[:-1], np.diff(starts), octets
