"""Names of tokens: the table that shows tokens by name, and lists of names. Pure.

A token is shown by its name, or without one as `0x` and eight hex digits. A name that ends with `/0x` stands
for none: it says that behind the pattern before it come identifiers of CAN frames (`car/0x`).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from bus import asking, events, logs
from bus.watch import canaries
from bus.wire.identifier import identifier_word, is_identifier
from bus.wire.notation import names_in, names_in_or_none, written
from bus.wire.pattern import hexadecimal, token

ALARM: Final = "buscoupler/alarm"
"""The pattern on which gateways announce alarms."""
GATEWAY: Final = "buscoupler/gateway"
"""The pattern on which gateways announce themselves to each other."""
RESERVED: Final = (
    *events.WORD.split("/"),
    *events.KINDS,
    *logs.WORD.split("/"),
    *logs.LEVELS,
    *asking.WORD.split("/"),
    *asking.WORDS,
    canaries.NAME,
    "traffic",
    "alert",
)
"""The names that the product itself sends on: events (also alarms), logs, last values, canaries, test
traffic, alerts."""

IDENTIFIERS: Final = "/0x"
_COMMENT: Final = re.compile(r"(^|\s)#.*$")


def names_from(lines: Iterable[str]) -> list[int | str]:
    """Return the names or patterns in a text, one a line. A `#` begins a comment.

    It stands at the start of a line or after a blank. Raises `TokenError` for a line that is no pattern.
    """
    return [name for line in lines for name in names_in(_COMMENT.sub("", line).strip())]


def lines_of(names: Iterable[str]) -> Iterator[str]:
    """Yield the lines from which `names_from` reads these names, without names that no line can hold."""
    for name in names:
        for line in (name, f'"{name}"'):
            if name and name.isprintable() and names_in_or_none(_COMMENT.sub("", line).strip()) == [name]:
                yield line
                break


def texts(names: Iterable[int | str]) -> list[str]:
    """Return the names among names and numbers, each once."""
    return [name for name in dict.fromkeys(names) if isinstance(name, str)]


@lru_cache(maxsize=2)
def table_of(names: tuple[str, ...]) -> "Names":
    """Return the table of some names: the same for the same ones, as a status needs it each second."""
    return Names(names)


class Names:
    """A table of known names, to show tokens by name. The reserved names are always known."""

    __slots__ = ("_by_token", "_roots", "_words")

    def __init__(self, names: Iterable[int | str] = ()) -> None:
        self._by_token: dict[int, tuple[str, ...]] = {}
        self._roots = set[tuple[int, ...]]()  # patterns behind which there are identifiers
        self._words: dict[int, str] = {}  # of known tokens: to write a name takes longer than to find it
        for name in dict.fromkeys((*RESERVED, *names)):
            if isinstance(name, str) and name.endswith(IDENTIFIERS):
                self._add_root(name.removesuffix(IDENTIFIERS))
            elif isinstance(name, str):
                number = token(name)
                self._by_token[number] = (*self._by_token.get(number, ()), name)

    def _add_root(self, word: str) -> None:
        names = names_in_or_none(word)
        if names is not None:
            self._roots.add(tuple(map(token, names)))

    def get(self, number: int) -> str | None:
        """Return the name of a token, None if none is known. Names that share a token are joined: `a | b`."""
        found = self._by_token.get(number)
        return " | ".join(sorted(found)) if found else None

    @property
    def roots(self) -> frozenset[tuple[int, ...]]:
        """The patterns behind which there are identifiers of CAN frames."""
        return frozenset(self._roots)

    def tokens(self) -> Iterable[int]:
        """Return the tokens that have a name."""
        return self._by_token

    def collisions(self) -> dict[int, list[str]]:
        """Return each token that several names share, with those names."""
        return {number: sorted(names) for number, names in self._by_token.items() if len(names) > 1}

    def word(self, number: int) -> str:
        """Return a token as one part of a pattern: its name, or hex; `a|b` if two names share the token."""
        found = self._by_token.get(number)
        if found is None:
            return hexadecimal(number)
        if number not in self._words:
            self._words[number] = "|".join(map(written, sorted(found)))
        return self._words[number]

    def show(self, tokens: Iterable[int]) -> str:
        """Return a pattern as the word that `pattern_of` reads, if no two names in it share a token."""
        words = list(map(self.word, some := tuple(tokens)))
        for root in self._roots:
            place = len(root)
            if len(some) > place and some[:place] == root and is_identifier(some[place]):
                words[place] = identifier_word(some[place])
        return "/".join(words) or "/"
