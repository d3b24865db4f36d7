"""The quantities that a process knows, by pattern. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Final

from bus.quantity.quantity import Quantity
from bus.wire.pattern import Pattern

_ANY: Final = -1


class Quantities:
    """Quantities by the tokens of their patterns. Of two with the same pattern, the last one counts."""

    def __init__(self, quantities: Iterable[Quantity] = ()) -> None:
        self._exact, self._open = dict[tuple[int, ...], Quantity](), dict[tuple[int, ...], Quantity]()
        self._places = set[int]()
        for one in quantities:
            tokens = tuple(Pattern(*one.pattern))
            if one.any_at is None:
                self._exact[tokens] = one
            else:
                self._places.add(one.any_at)
                self._open[_opened(tokens, one.any_at)] = one
        if self._exact or self._open:
            import_module("bus.quantity.telling")  # now, and not when the first value is asked for

    def __iter__(self) -> Iterator[Quantity]:
        yield from (*self._exact.values(), *self._open.values())

    def find(self, tokens: Sequence[int]) -> Quantity | None:
        """Return the quantity of the frames with exactly these tokens, or None."""
        found = self._exact.get(tuple(tokens))
        if found is not None:
            return found
        keys = (_opened(tuple(tokens), place) for place in self._places if place < len(tokens))
        return next((self._open[key] for key in keys if key in self._open), None)


def _opened(tokens: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*tokens[:place], _ANY, *tokens[place + 1 :])
