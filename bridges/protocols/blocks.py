"""Blocks of text lines with one check over all of them, whose values are given out when it fits. Pure.

A block may hold any number of lines, so it is cut where it ends, and not by line: `Gatherer` does that, and
`BlockTranslator` is the base of translators that read values out of what was cut.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from bridges.protocols.delimited import Cutter
from bridges.protocols.translator import Translator, Wire, frame
from bus.key_types import Names
from bus.quantity.forms import Form, write
from bus.wire.frame import DATA_BYTES_MAX
from bus.wire.pattern import Pattern, token

FIELDS_MAX: Final = 512
"""The most fields of a block."""
_NAMES_MAX: Final = 4096  # of fields whose tokens are kept
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,64}(?:\.[0-9]{1,64})?")
_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,63})(?:\.[0-9]{1,64})?")
_NONE: Final = re.compile(r"[-. ]*")


class Unfit(ValueError):
    """A block that is not given out; `args[0]` is the reason in a word or two."""


class Field(NamedTuple):
    """One value of a block: the names behind the root, and the value as it was written.

    `is_number`: it is known to be one, False if it is known to be text, and None if nobody knows: then a
    number is what has no zeros in front.
    """

    names: tuple[str, ...]
    value: str
    unit: str = ""
    is_number: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the device has no value."""
        return _NONE.fullmatch(self.value) is not None

    def read(self, form: Form) -> Decimal | str | None:
        """Return the value; None if the device has none, or if the form has none for text."""
        if self.is_empty:
            return None
        pattern = _NUMBER if self.is_number else _PLAIN
        if self.is_number is not False and pattern.fullmatch(self.value):
            return Decimal(self.value)
        return None if form == "number" else self.value


class Gatherer(Cutter):
    """A cutter of a stream behind each match of `end`, which has at most `end_bytes`.

    The runs have their ends. Longer ones are dropped as those of `Cutter` are.
    """

    __slots__ = ("_end",)

    def __init__(self, end: re.Pattern[bytes], end_bytes: int, longest_bytes: int) -> None:
        super().__init__(b"", longest_bytes)
        self._end, self._keep = end, end_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Return the runs that `data` ends."""
        start = max(0, len(self._held) - self._keep)
        self._held += data
        stops = [found.end() for found in self._end.finditer(self._held, start)]
        runs = [bytes(self._held[at:stop]) for at, stop in zip([0, *stops], stops, strict=False)]
        if stops:
            del self._held[: stops[-1]]
        if self._is_skipping and runs:
            self.over_bytes += len(runs.pop(0))
            self._is_skipping = False
        self._bound()
        return [run for run in runs if self._is_short(run)]


class BlockTranslator(Translator[bytes]):
    """A translator of blocks. Derive from it, and override `_fields` and `_begun`.

    A block above `longest_bytes` is counted as `oversize`, one without an end as `unfinished`, and one whose
    check is wrong or that cannot be read by the reason in `Unfit`: no value of it is given out. A value that
    the device does not have is counted as `not available`, and what should be a number and is none, where
    only numbers are given out, as `not a value`.
    """

    def __init__(self, wire: Wire, root: Names, form: Form, gatherer: Gatherer) -> None:
        super().__init__(wire)
        self._root, self._form, self._gatherer = tuple(Pattern(*root)), form, gatherer
        self._tokens: dict[tuple[str, ...], tuple[int, ...]] = {}

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        runs = self._gatherer.feed(self._text(b"".join(items)))
        count, size = self._gatherer.take_over()
        self.wire.stats.reject("oversize", count)
        self.noise += size
        return [message for run in runs for message in self._given(run, now_s)]

    def _text(self, data: bytes) -> bytes:
        """Return what is part of blocks in the bytes that came."""
        return data

    def _begun(self, run: bytes) -> bytes:
        """Return a run from where its block begins, b"" if it has none. Count what stands before by `reject`.
        Override it where a run may have more in it."""
        return run

    def _fields(self, block: bytes) -> Sequence[Field]:
        """Return the fields of a block that are wanted. Raises `Unfit` unless all of it is as it was sent."""
        raise NotImplementedError

    def _given(self, run: bytes, now_s: float) -> list[bytes]:
        block = self._begun(run)
        if not block:
            return []
        try:
            fields = self._fields(block)
        except Unfit as error:
            self.reject(error.args[0], len(block))
            return []
        self.found += 1
        unix_s = self.wire.unix_s(now_s)
        return [made for field in fields if (made := self._frame(field, unix_s)) is not None]

    def _frame(self, field: Field, unix_s: float) -> bytes | None:
        value = field.read(self._form)
        if value is None:
            self._count_lacking(field)
            return None
        data = write(self._form, value, field.unit, unix_s)
        if len(data) > DATA_BYTES_MAX:
            self.reject("oversize")
            return None
        return frame(self._pattern(field.names), data)

    def _count_lacking(self, field: Field) -> None:
        """Count a field without a value; text that `form` leaves out, as it says, is none."""
        if field.is_empty:
            self.wire.stats.reject("not available")
        elif field.is_number:
            self.wire.stats.reject("not a value")

    def _pattern(self, names: tuple[str, ...]) -> tuple[int, ...]:
        found = self._tokens.get(names)
        if found is None:
            if len(self._tokens) >= _NAMES_MAX:
                self._tokens.clear()
            found = self._tokens[names] = (*self._root, *map(token, names))
        return found

    def end(self, now_s: float) -> list[bytes]:
        rest, was_skipping = self._gatherer.take_rest()
        if was_skipping:
            self.noise += len(rest)
        elif rest.strip():
            self.reject("unfinished", len(rest))
        return []
