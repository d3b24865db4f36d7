"""A block: values of one signal in a batch of rows, and what makes one. Pure, with Arrow and numpy."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridges.protocols.dbc.columns import Decoder
from bridges.protocols.dbc.series import Frames, Series, grouped, texts_of
from bus.quantity.quantity import Quantity
from bus.wire.identifier import identifier_word
from pipeline.signals.places import RowPlace

Array = npt.NDArray[Any]

_NO_ROWS: Final[Array] = np.empty(0, np.int64)

KEYS: Final = ("gateway", "bus", "pattern", "signal", "unit")
"""The columns that tell signals apart: the first fields of a `Block`."""


class Block(NamedTuple):
    """Values of one signal, in the order of the rows. `numbers` and `texts` are null where there is none, or
    None as a whole. `low` and `high` bound the numbers, as a database says. `rows` are the numbers of the
    messages in their batch."""

    gateway: str
    bus: str
    pattern: str
    signal: str
    unit: str
    ts_ns: Array
    numbers: pa.Array | None
    texts: pa.Array | None
    low: float | None = None
    high: float | None = None
    rows: Array = _NO_ROWS

    @property
    def keys(self) -> tuple[str, ...]:
        """The values of `KEYS`."""
        return self.gateway, self.bus, self.pattern, self.signal, self.unit

    @property
    def name(self) -> str:
        """The pattern and the signal as one word."""
        return self.signal if self.pattern == "/" else f"{self.pattern}/{self.signal}"


class Moments(NamedTuple):
    """The times of rows, their numbers in a batch, and the gateway and place that they are of."""

    ts_ns: Array
    rows: Array
    origin: tuple[str, RowPlace]

    def at(self, places: Array) -> "Moments":
        """Return those of some rows."""
        return self._replace(ts_ns=self.ts_ns[places], rows=self.rows[places])


def strangers(decoder: Decoder, frames: Frames, bus: str, pattern: str, at: Moments) -> Iterator[Block]:
    """Yield the lengths of frames that no message has, by identifier."""
    unknown = np.flatnonzero(~decoder.knows(frames.identifiers))
    found, codes = np.unique(frames.identifiers[unknown], return_inverse=True)
    for code, places in grouped(codes, len(found)):
        rows = unknown[places]
        when, lengths = at.at(rows), pa.array(frames.sizes[rows].astype(np.float64))
        name = identifier_word(int(found[code]))
        yield Block("", bus, pattern, name, "B", when.ts_ns, lengths, None, rows=when.rows)


def block_of(series: Series, bus: str, pattern: str, at: Moments) -> Block:
    """Return the block of a series that a database has decoded."""
    signal, texts = series.signal, None
    if series.texts is not None and (series.texts >= 0).any():
        places = pa.array(series.texts, mask=series.texts < 0)
        texts = pa.array(texts_of(signal), pa.string()).take(places)
    numbers = pa.array(series.values)
    when, low, high = at.at(series.rows), signal.low, signal.high
    bounds = (low, high) if low != high else (None, None)  # 0 to 0 says nothing
    return Block("", bus, pattern, signal.name, signal.unit, when.ts_ns, numbers, texts, *bounds, when.rows)


def described(block: Block, quantity: Quantity) -> Block:
    """Return a block with the unit and the range of its quantity, and the texts of numbers that have one."""
    texts = block.texts
    if quantity.choices and block.numbers is not None:
        places = pc.index_in(block.numbers, value_set=pa.array(map(float, quantity.choices)))
        said = pa.array(quantity.choices.values(), pa.string()).take(places)
        texts = said if texts is None else pc.coalesce(said, texts)
    return block._replace(unit=block.unit or quantity.unit, texts=texts, low=quantity.low, high=quantity.high)


def valued(block: Block) -> Block:
    """Return a block without the rows that have neither number nor text."""
    columns = [one for one in (block.numbers, block.texts) if one is not None]
    if any(not one.null_count for one in columns):
        return block
    known = np.zeros(len(block.ts_ns), bool)
    for one in columns:
        known |= one.is_valid().to_numpy(zero_copy_only=False)
    kept = pa.array(known)
    numbers, texts = (None if one is None else one.filter(kept) for one in (block.numbers, block.texts))
    return block._replace(ts_ns=block.ts_ns[known], numbers=numbers, texts=texts, rows=block.rows[known])
