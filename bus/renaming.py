"""The patterns of frames on a wire and inside the bridge: `strip`, `rename` and `prefix` of a side. Pure.

Inwards the three act in this order, outwards in the opposite one. A frame crosses only if its new pattern
leads back to the old one, so that two names never become one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bus.key_types import Names
from bus.wire.frame import TOKENS_MAX
from bus.wire.notation import text_of
from bus.wire.pattern import Pattern

Tokens = tuple[int, ...]


class Turn(NamedTuple):
    """The change of one frame's tokens: the first `cut` are replaced by `head`."""

    cut: int
    head: Tokens

    def of(self, tokens: Tokens) -> Tokens:
        """Return tokens after the change."""
        return self.head + tokens[self.cut :]


class _Pair(NamedTuple):
    """A beginning of patterns, and what stands in its place on the other side."""

    old: Pattern
    new: Pattern


class _Way:
    """One direction: the pair with the longest beginning decides. The first `skip` tokens are ignored."""

    def __init__(self, pairs: Iterable[_Pair], skip: int = 0) -> None:
        self._pairs = sorted(pairs, key=lambda pair: len(pair.old), reverse=True)
        self._skip = skip
        self.reach = skip + max((len(pair.old) for pair in self._pairs), default=0)

    def turn(self, tokens: Tokens) -> Turn | None:
        """Return the change of a frame's tokens, None if it has no name on the other side."""
        rest = tokens[self._skip :]
        if len(tokens) < self._skip:
            return None
        found = next((pair for pair in self._pairs if pair.old.matches(rest)), None)
        return None if found is None else Turn(self._skip + len(found.old), tuple(found.new))

    def images(self, names: Names, back: "_Way") -> Iterator[Names]:
        """Yield patterns that frames of a pattern have on the other side; together they cover all of them.

        A pattern from which `back` leads elsewhere is none.
        """
        rest = Pattern(*names[self._skip :])
        found = next((pair for pair in self._pairs if pair.old.matches(rest)), None)
        if found is not None:
            made = Pattern(*found.new.names, *rest.names[len(found.old) :])
            turn = back.turn(made)
            if self._skip or (turn is not None and turn.of(made) == rest):
                yield made.names
        for pair in self._pairs:
            if len(pair.old) > len(rest) and rest.matches(pair.old):
                yield pair.new.names


@dataclass(frozen=True)
class Renaming:
    """The settings `strip`, `rename` (pairs of a pattern on the wire and one inside) and `prefix`.

    `strip` is a pattern, or a number of tokens; with a number nothing leaves, as nobody knows what to put
    back. The constructor raises ValueError for patterns that cannot be told apart on the other side.
    """

    strip: int | Names = ()
    rename: tuple[tuple[Names, Names], ...] = ()
    prefix: Names = ()

    def __post_init__(self) -> None:
        if isinstance(self.strip, int) and not 0 < self.strip < TOKENS_MAX:
            raise ValueError(f"strip: {self.strip} is out of range: 1 to {TOKENS_MAX - 1}, or a pattern")
        for pattern in (one for pair in self.rename for one in pair):
            if not pattern:
                raise ValueError("rename: / is no name: use prefix or strip for all patterns")
        for side, one, other in ((0, "is given", "names"), (1, "would be the name of", "patterns")):
            seen = dict[Pattern, Names]()
            for pair in self.rename:
                first = seen.setdefault(Pattern(*pair[side]), pair[1 - side])
                if first is not pair[1 - side]:
                    both = f"{text_of(first)} and {text_of(pair[1 - side])}"
                    raise ValueError(f"rename: {text_of(pair[side])} {one} two {other}, {both}: keep one")
        _ = self._in, self._out  # too many tokens are told here

    def __bool__(self) -> bool:
        return bool(self.strip or self.rename or self.prefix)

    @cached_property
    def _in(self) -> _Way:
        skip = self.strip if isinstance(self.strip, int) else 0
        return _Way(self._pairs(), skip)

    @cached_property
    def _out(self) -> _Way:
        return _Way((_Pair(new, old) for old, new in self._pairs()) if self.lets_out else ())

    def pairs(self) -> list[tuple[Tokens, Tokens]]:
        """Return the beginnings of patterns on the wire, and what stands in their place inside."""
        return [(tuple(old), tuple(new)) for old, new in self._pairs()]

    def _pairs(self) -> Iterator[_Pair]:
        strip = () if isinstance(self.strip, int) else self.strip
        for old, new in (((), ()), *self.rename):
            yield _Pair(Pattern(*strip, *old), Pattern(*self.prefix, *new))

    @property
    def lets_out(self) -> bool:
        """Whether anything can leave: not where tokens are gone that nobody knows."""
        return not isinstance(self.strip, int)

    @property
    def reach(self) -> int:
        """The number of tokens that decide, at most."""
        return self._in.reach + self._out.reach

    def entering(self, tokens: Tokens) -> Turn | None:
        """Return how the tokens of a frame change that enters; None if it has no name inside."""
        turn = self._in.turn(tokens)
        if turn is None or not self.lets_out:
            return turn
        return turn if self._leads_back(self._out, turn, tokens) else None

    def leaving(self, tokens: Tokens) -> Turn | None:
        """Return how the tokens of a frame change that leaves; None if it has no name on the wire."""
        turn = self._out.turn(tokens)
        return turn if turn is not None and self._leads_back(self._in, turn, tokens) else None

    def _leads_back(self, way: _Way, turn: Turn, tokens: Tokens) -> bool:
        new = turn.of(tokens)
        back = way.turn(new)
        return back is not None and back.of(new) == tokens

    def inside(self, pattern: Names) -> tuple[Names, ...]:
        """Return patterns inside the bridge for the frames of a pattern on the wire; empty for none."""
        return tuple(dict.fromkeys(self._in.images(pattern, self._out)))

    def outside(self, pattern: Names) -> tuple[Names, ...]:
        """Return patterns on the wire for the frames of a pattern inside the bridge; empty for none."""
        return tuple(dict.fromkeys(self._out.images(pattern, self._in)))

    def patterns(self) -> Iterator[Names]:
        """Yield all patterns in the settings."""
        yield from (() if isinstance(self.strip, int) else self.strip, self.prefix)
        yield from (one for pair in self.rename for one in pair)

    def words(self) -> Iterator[str]:
        """Yield the settings in words."""
        if self.strip:
            words = f"{self.strip} tokens" if isinstance(self.strip, int) else text_of(self.strip)
            yield f"strip {words}"
        yield from (f"rename {text_of(old)} to {text_of(new)}" for old, new in self.rename)
        if self.prefix:
            yield f"prefix {text_of(self.prefix)}"
