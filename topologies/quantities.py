"""The quantities that a topology knows: what the values under patterns are, by the protocols of its sides."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from bridges.protocols.protocol import Protocol
from bus.key_types import TOKEN_MAX, Names
from bus.quantity.quantity import Quantity
from bus.renaming import Renaming, Tokens
from bus.wire.pattern import Pattern
from topologies.model import Side, Topology

_ANY: Final = TOKEN_MAX
"""A token that stands for any other."""


def quantities(topology: Topology) -> Iterator[Quantity]:
    """Yield all quantities, by the patterns that they have on buses. May read files of protocols."""
    seen = list[tuple[Protocol, object]]()
    for side in _spoken(topology):
        assert side.speaks is not None
        if (side.speaks, side.renaming) not in seen:
            seen.append((side.speaks, side.renaming))
            yield from of_side(side)


def _spoken(topology: Topology) -> Iterator[Side]:
    for spec in topology.bridges.values():
        for side in (side for gateway in spec.on for side in spec.at(gateway)):
            if side.speaks is not None:
                yield side


def of_side(side: Side) -> Iterator[Quantity]:
    """Yield the quantities of a side by the patterns that they have inside its bridge. May read files."""
    renaming, told = side.renaming, _told_apart(side.renaming)
    for one in () if side.speaks is None else side.speaks.quantities():
        if not renaming:
            yield one
        elif one.any_at is None:
            yield from _exact(one, renaming)
        else:
            yield from _open(one, one.any_at, renaming, told)


def _told_apart(renaming: Renaming) -> dict[Tokens, set[int]]:
    """Return the tokens that follow each beginning of what a side renames."""
    found = dict[Tokens, set[int]]()
    for old, _ in renaming.pairs():
        for at, token in enumerate(old):
            found.setdefault(old[:at], set()).add(token)
    return found


def _exact(one: Quantity, renaming: Renaming) -> Iterator[Quantity]:
    for pattern in renaming.inside(one.pattern):
        yield replace(one, pattern=pattern)


def _open(one: Quantity, at: int, renaming: Renaming, told: Mapping[Tokens, set[int]]) -> Iterator[Quantity]:
    """Yield what a quantity is with any token at a place, and with each that `rename` tells from others, such
    as one source of J1939: its name may have no such place."""
    start, name, rest = one.pattern[:at], one.pattern[at], one.pattern[at + 1 :]
    own = Pattern(name)[0]
    for token in sorted(told.get(tuple(Pattern(*start)), ())):
        yield from _named(one, (*start, name if token == own else token, *rest), renaming)
    for pattern in renaming.inside((*start, _ANY, *rest)):
        place = pattern.index(_ANY) if _ANY in pattern else None  # `strip` may have taken it off
        yield replace(
            one, pattern=tuple(name if n == place else x for n, x in enumerate(pattern)), any_at=place
        )


def _named(one: Quantity, pattern: Names, renaming: Renaming) -> Iterator[Quantity]:
    """Yield what a quantity is under a pattern that a side calls otherwise than others like it."""
    place = one.any_at or 0
    usual = renaming.inside((*pattern[:place], _ANY, *pattern[place + 1 :]))
    for found in renaming.inside(pattern):
        if found not in {tuple(pattern[place] if name == _ANY else name for name in some) for some in usual}:
            yield replace(one, pattern=found, any_at=None)
