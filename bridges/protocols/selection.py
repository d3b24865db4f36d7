"""Sets of CAN identifiers, as a file lists them: single ones, ranges and masks. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bridges.items import EXTENDED, IDENTIFIER, KINDS, REMOTE, STANDARD_MAX
from bus.wire.identifier import Identifier, identifier_in, identifier_word

ALL: Final = "all"
FILTERS_MAX: Final = 512
"""CAN_RAW_FILTER_MAX of the kernel."""
FULL: Final = KINDS | IDENTIFIER
_TWICE: Final = 8  # times the items of a list may have one identifier
Piece = tuple[int, int]
"""An identifier and a mask, both with the top bits: all identifiers that agree where the mask has 1."""


def identifier_of(item: int | str) -> Identifier:
    """Return the token of one identifier. Raises ValueError if it is none, or out of range."""
    if isinstance(item, str):
        found = identifier_in(item.strip())
        item = _number(item) if found is None else found
    kind, number = item & KINDS, item & IDENTIFIER
    if item < 0 or item >> 32 or kind & ~(EXTENDED | REMOTE):
        raise ValueError(f"{item:#x} is no CAN identifier")
    if number > STANDARD_MAX and not kind & EXTENDED:
        raise ValueError(f"{number:#x} is above 0x7ff: write {number:#x}x for an extended identifier")
    return Identifier(item)


def _number(text: str) -> int:
    try:
        return int(text, 16 if text.strip()[:2].lower() == "0x" else 10)
    except ValueError:
        example = 'write one like 0x123, 0x18fef100x, 0x123r, "0x100-0x1ff" or 0x100/0x700'
        raise ValueError(f"{text[:40]!r} is no CAN identifier: {example}") from None


def pieces_of(item: int | str) -> Iterator[Piece]:
    """Yield the pieces of one item of a list. Raises ValueError."""
    if isinstance(item, str) and "-" in item:
        first, _, last = item.partition("-")
        yield from _range(identifier_of(first), identifier_of(last), item)
    elif isinstance(item, str) and "/" in item:
        yield _masked(*item.split("/", 1))
    else:
        yield identifier_of(item), FULL


def _range(first: int, last: int, text: str) -> Iterator[Piece]:
    if first & KINDS != last & KINDS or first > last:
        raise ValueError(f"{text[:40]!r}: a range goes up from one identifier to another of its kind")
    while first <= last:
        bits = (first & -first).bit_length() - 1 if first & IDENTIFIER else 29
        while first + (1 << bits) - 1 > last:
            bits -= 1
        yield first, FULL & ~((1 << bits) - 1)
        first += 1 << bits


def _masked(identifier: str, mask: str) -> Piece:
    one, found = identifier_of(identifier), identifier_in(mask.strip())
    number = (_number(mask) if found is None else found) & IDENTIFIER
    if not one & EXTENDED and number > STANDARD_MAX:
        raise ValueError(f"{mask.strip()[:40]} is no mask of a standard identifier: it is above 0x7ff")
    high = 0 if one & EXTENDED else IDENTIFIER & ~STANDARD_MAX
    whole = KINDS | high | number
    return one & whole, whole


@dataclass(frozen=True, slots=True)
class Selection:
    """A set of identifiers: `values` by mask. None for all there are, remote frames included."""

    values: Mapping[int, frozenset[int]] | None

    def __contains__(self, identifier: int) -> bool:
        if self.values is None:
            return True
        return any(identifier & mask in values for mask, values in self.values.items())

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The set as identifiers with masks."""
        if self.values is None:
            return ((0, 0),)
        return tuple((value, mask) for mask, values in self.values.items() for value in sorted(values))

    def singles(self, most: int) -> tuple[Identifier, ...] | None:
        """Return all identifiers, in order; None if they are more than `most`."""
        if self.values is None:
            return None
        free = {mask: FULL & ~mask for mask in self.values}
        if sum(len(values) << free[mask].bit_count() for mask, values in self.values.items()) > _TWICE * most:
            return None
        found = {one for value, mask in self.pieces for one in _each(value, free[mask])}
        return tuple(map(Identifier, sorted(found))) if len(found) <= most else None

    def overlap(self, other: "Selection") -> str:
        """Return an identifier that both sets have, as it is written; "" if they have none."""
        if self.values is None and other.values is None:
            return "every identifier"
        mine = {0: frozenset((0,))} if self.values is None else self.values
        theirs = {0: frozenset((0,))} if other.values is None else other.values
        for mask, values in mine.items():
            for mask_of_other, others in theirs.items():
                common = mask & mask_of_other
                reached = {value & common: value for value in values}
                met = next((value for value in others if value & common in reached), None)
                if met is not None:
                    return identifier_word(reached[met & common] | met)
        return ""

    def __or__(self, other: "Selection") -> "Selection":
        if self.values is None or other.values is None:
            return Selection(None)
        masks = dict.fromkeys((*self.values, *other.values))
        none = frozenset[int]()
        return Selection({m: self.values.get(m, none) | other.values.get(m, none) for m in masks})


def _each(value: int, free: int) -> Iterator[int]:
    """Yield the numbers that agree with `value` but for the `free` bits."""
    bits = free
    while True:
        yield value | bits
        if not bits:
            return
        bits = (bits - 1) & free


def selection_of(items: Iterable[int | str], remote: bool = False) -> Selection:
    """Return the set of a list's items. With `remote` an identifier stands for its remote frame, too.

    Raises ValueError for an item that is none.
    """
    items = tuple(items)
    if ALL in items:
        return Selection(None)
    found = dict[int, set[int]]()
    for value, mask in (piece for item in items for piece in pieces_of(item)):
        found.setdefault(mask, set()).add(value)
        if remote:
            found[mask].add(value | REMOTE)
    return Selection({mask: frozenset(values) for mask, values in found.items()})
