"""The series of single signals in a batch of rows. Pure, with Arrow and numpy: no Python for a row,
unless it is a part of a long message.

`Reader` keeps the decoders of databases, and long messages that are under way, from batch to batch.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridges.protocols.dbc.columns import Decoder
from bridges.protocols.dbc.j1939.joining import Joiner
from bridges.protocols.dbc.series import PAD, Frames, grouped
from bus import events
from bus.quantity.quantity import Quantity
from bus.wire.pattern import token
from capture.schema import Kind
from pipeline.signals import forms
from pipeline.signals.blocks import Block, Moments, block_of, described, strangers, valued
from pipeline.signals.databases import Tokens
from pipeline.signals.ends import ends_with
from pipeline.signals.lists import Lists, coded, octets_of
from pipeline.signals.places import RowPlace
from pipeline.signals.wanted import Wanted

COLUMNS: Final = ("ts_ns", "kind", "hub", "bus", "dir", "tokens", "payload")
"""The columns of a capture that a batch has."""

_KINDS, _WAYS = 8, 2
_OURS: Final = events.PATTERN[0]  # events, the log, alarms, gateways, questions for values
_HEAD, _SIZE, _CLASSIC, _FD = 8, 4, 16, 72  # of can_frame and canfd_frame
_BESIDE_NS: Final = 10 * 10**9
"""A gateway that says values beside its sentences says them at least so often, while it has some."""

Array = npt.NDArray[Any]


class Reader:
    """A reader of batches."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._decoders = dict[tuple[str, Tokens | None], Decoder | None]()
        self._patterns = dict[Tokens, tuple[str, str, str]]()
        self._joiners = defaultdict[tuple[str, RowPlace, str], Joiner](lambda: Joiner({}))

    def blocks(self, batch: pa.RecordBatch, gateway: str) -> Iterator[Block]:
        """Yield the blocks of a batch of one gateway, which has `COLUMNS`."""
        times = batch.column("ts_ns").to_numpy(zero_copy_only=False)
        for place, rows in self._places(batch, gateway, times):
            some = batch if len(rows) == len(batch) else batch.take(pa.array(rows))
            at = Moments(times if len(rows) == len(batch) else times[rows], rows, (gateway, place))
            data = some.column("payload")
            if place.kind == Kind.WIRE:
                found = self._wire(place.bus, at, data)
            else:
                found = self._messages(place.bus, at, some.column("tokens"), data)
            for block in found:
                if len(block.ts_ns):
                    yield block._replace(gateway=gateway)

    def _places(self, batch: pa.RecordBatch, gateway: str, times: Array) -> Iterator[tuple[RowPlace, Array]]:
        """Yield the places whose rows are wanted, with the numbers of the rows."""
        (hub, hubs), (bus, buses) = coded(batch.column("hub")), coded(batch.column("bus"))
        way, kind = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("dir", "kind"))
        codes = ((hub * len(buses) + bus) * _WAYS + way % _WAYS) * _KINDS + kind % _KINDS
        codes[~self._inside(times)] = count = len(hubs) * len(buses) * _WAYS * _KINDS
        wanted = None if self.wanted.places is None else self.wanted.places.get(gateway, frozenset())
        for code, rows in grouped(codes, count + 1):
            if code < count:
                where, a_kind = divmod(code, _KINDS)
                where, a_way = divmod(where, _WAYS)
                place = RowPlace(hubs[where // len(buses)], buses[where % len(buses)], a_way, a_kind)
                if place in wanted if wanted is not None else place.kind == Kind.FRAME and not place.dir:
                    yield place, rows

    def _inside(self, times: Array) -> Array:
        """Return which times are wanted."""
        wanted, found = self.wanted, np.ones(len(times), bool)
        if wanted.from_ns is not None:
            found &= times >= wanted.from_ns
        if wanted.to_ns is not None:
            found &= times < wanted.to_ns
        if wanted.inside is not None:
            first, last = self._spans
            at = np.searchsorted(first, times, side="right")
            found &= (at > 0) & (times < np.concatenate([[0], last])[at])
        return found

    @cached_property
    def _spans(self) -> tuple[Array, Array]:
        spans = np.array(self.wanted.inside or np.empty((0, 2)), np.int64).reshape(-1, 2)
        return spans[:, 0], spans[:, 1]

    def _decoder(self, bus: str, root: Tokens | None) -> Decoder | None:
        """Return the decoder for frames on the wire of a segment, or below a root; None if there is none."""
        key = bus, root
        if key not in self._decoders:
            some = [
                one
                for one in self.wanted.databases
                if (one.is_on(bus) if root is None else one.is_below(root, bus))
            ]
            messages = {message.identifier: message for one in reversed(some) for message in one.messages}
            is_of_use = messages or self.wanted.strangers
            self._decoders[key] = Decoder(messages.values()) if is_of_use else None
        return self._decoders[key]

    def _wire(self, bus: str, at: Moments, data: pa.Array) -> Iterator[Block]:
        """Yield the signals of the frames on a wire: structs of the kernel, little-endian."""
        decoder = self._decoder(bus, None)
        starts, sizes, octets = octets_of(data)
        is_frame = (sizes == _CLASSIC) | (sizes == _FD)
        if decoder is None or not is_frame.any():
            return
        starts, sizes, at = starts[is_frame], sizes[is_frame], at.at(is_frame)
        identifiers = np.ndarray(len(octets) - PAD + 1, "<u4", octets, strides=(1,))[starts]
        most = sizes - _HEAD
        lengths = np.minimum(octets[starts + _SIZE].astype(np.int64), most)
        frames = Frames(identifiers.astype(np.uint32), starts + _HEAD, lengths, octets)
        yield from self._decoded(decoder, frames, bus, "", at)

    def _decoded(self, decoder: Decoder, frames: Frames, bus: str, root: str, at: Moments) -> Iterator[Block]:
        if self.wanted.strangers:
            yield from strangers(decoder, frames, bus, root or "/", at)
            return
        joiner = self._joiners[*at.origin, root]
        for series in decoder.decode(frames, at.ts_ns, joiner).series:
            source = () if series.source is None else (str(series.source),)
            pattern = "/".join((*((root,) if root else ()), series.message.name, *source))
            block = block_of(series, bus, pattern, at)
            if self.wanted.has(block.name):
                yield block

    def _messages(self, bus: str, at: Moments, tokens: pa.ListArray, data: pa.Array) -> Iterator[Block]:
        lists = Lists.of(tokens)
        rest = lists.counts > 0
        for number, root in enumerate(self.wanted.roots):
            is_guess = number == len(self.wanted.roots) - 1
            yield from self._can(bus, at, lists, data, root, rest, is_guess)
        rows = np.flatnonzero(rest)
        if len(rows):
            yield from self._plain(bus, at, lists, data, rows)

    def _can(
        self,
        bus: str,
        at: Moments,
        lists: Lists,
        data: pa.Array,
        root: Tokens,
        rest: Array,
        is_guess: bool,
    ) -> Iterator[Block]:
        """Yield the signals of CAN frames below a root, and take their rows out of `rest`."""
        decoder = self._decoder(bus, root)
        rows = np.flatnonzero(rest & lists.begin(root) & lists.are_frames(len(root)))
        if not len(rows) or (decoder is None and is_guess):
            return
        identifiers = lists.values[lists.starts[rows] + len(root)].astype(np.uint32)
        if is_guess and decoder is not None:
            known = decoder.knows(identifiers)
            rows, identifiers = rows[known], identifiers[known]
        rest[rows] = False
        if decoder is not None:
            starts, sizes, octets = octets_of(data)
            frames = Frames(identifiers, starts[rows], sizes[rows], octets)
            yield from self._decoded(decoder, frames, bus, self.wanted.names.show(root), at.at(rows))

    def _plain(self, bus: str, at: Moments, lists: Lists, data: pa.Array, rows: Array) -> Iterator[Block]:
        """Yield the signals of messages that are no CAN frames, pattern by pattern."""
        _, firsts, codes = np.unique(lists.hashes(rows), return_index=True, return_inverse=True)
        patterns = dict[Tokens, Array]()
        for code, some in grouped(codes, len(firsts)):
            first = rows[firsts[code]]
            patterns[tuple(lists.values[lists.starts[first] : lists.ends[first]].tolist())] = rows[some]
        for tokens, some in patterns.items():
            if tokens[0] == _OURS:
                continue
            pattern, above, last = self._pattern(tokens)
            if self.wanted.ends and not self._may_be_wanted(pattern):
                continue
            when, part = at.at(some), data.take(pa.array(some))
            quantity = self.wanted.quantities.find(tokens)
            is_text = quantity is not None and quantity.is_text
            for form, its in self._forms(tokens, part, quantity):
                mine = part if len(its) == len(part) else part.take(pa.array(its))
                moments = when.at(its)
                found = forms.read(form, mine, is_text, lambda kind: token(kind) in tokens)  # noqa: B023 - read at once
                if form == "nmea":
                    found = _alone(found, tokens, moments, patterns, at)
                for values in found:
                    name = (pattern, values.name) if values.name else (above, last)
                    block = Block(
                        "", bus, *name, values.unit, moments.ts_ns, values.numbers, values.texts,
                        rows=moments.rows,
                    )  # fmt: skip
                    if self.wanted.has(block.name):
                        yield valued(block if quantity is None or values.name else described(block, quantity))

    def _may_be_wanted(self, pattern: str) -> bool:
        """Return whether a signal of a pattern may be wanted: it, or one of its members."""
        ends = self.wanted.ends
        return (
            self.wanted.has(pattern)
            or any(
                ends_with(pattern, end[:place])
                for end in ends
                for place in range(len(end))
                if end[place] == "/"
            )
            or any("/" not in end for end in ends)
        )

    def _pattern(self, tokens: Tokens) -> tuple[str, str, str]:
        """Return a pattern as text; and its beginning and its last part."""
        found = self._patterns.get(tokens)
        if found is None:
            show = self.wanted.names.show
            found = show(tokens), show(tokens[:-1]), show(tokens[-1:])
            self._patterns[tokens] = found
        return found

    def _forms(
        self, tokens: Tokens, data: pa.Array, quantity: Quantity | None
    ) -> Iterator[tuple[str, Array]]:
        """Yield the forms of the data of one pattern, and which of them have each."""
        fits = ((len(start), form) for start, form in self.wanted.given if tokens[: len(start)] == start)
        form = max(fits, default=(0, ""))[1] or ("" if quantity is None else quantity.form)
        if form:
            yield form, np.arange(len(data))
        else:
            yield from forms.divided(data)


def _alone(
    found: Iterator[forms.Values],
    tokens: Tokens,
    moments: Moments,
    patterns: Mapping[Tokens, Array],
    at: Moments,
) -> Iterator[forms.Values]:
    """Yield the fields of sentences, but for those times at which their gateway said them as frames, too."""
    for values in found:
        beside = patterns.get((*tokens, token(values.name)))
        if beside is None:
            yield values
            continue
        said_ns = at.ts_ns[beside]
        before, behind = said_ns.min() - _BESIDE_NS, said_ns.max() + _BESIDE_NS
        yield from forms.where(values, (moments.ts_ns < before) | (moments.ts_ns > behind))
