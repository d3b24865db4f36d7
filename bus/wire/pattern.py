"""Tokens and patterns.

A token is a u32; a pattern is a tuple of tokens that matches every frame whose tokens start with it. The
empty pattern matches all.
"""

from collections.abc import Iterable

from bus.errors import TokenError
from bus.wire.frame import TOKENS_MAX


def token(name: int | str) -> int:
    """Return the token of a name: an int unchanged; text hashed as TMQ does.

    `h = 65599 * h + code point` modulo 2**32 over the characters, then `h ^ (h >> 16)` (docs/wire/frame.md).
    Raises `TokenError` for an int outside u32 and for any other type.
    """
    if isinstance(name, str):
        h = 0
        for character in name:
            h = (65599 * h + ord(character)) & 0xFFFFFFFF
        return h ^ (h >> 16)
    if isinstance(name, int) and not isinstance(name, bool) and 0 <= name <= 0xFFFFFFFF:
        return name
    raise TokenError(f"{name!r} is not a token: give text, or a whole number from 0 to 4294967295")


def hexadecimal(number: int) -> str:
    """Return a token as it is shown if it has no name: `0x5be18fe4`."""
    return f"0x{number:08x}"


class Pattern(tuple[int, ...]):
    """A tuple of tokens: `Pattern("fridge", "temp", 7)`. Raises `TokenError` above 255 tokens.

    It is shown by the names that it was made of. Only the tokens count when patterns are compared.
    """

    names: tuple[int | str, ...]

    def __new__(cls, *names: int | str) -> "Pattern":
        if len(names) > TOKENS_MAX:
            raise TokenError(f"{len(names)} tokens: a pattern has at most {TOKENS_MAX}")
        made = super().__new__(cls, map(token, names))
        made.names = names
        return made

    def matches(self, tokens: tuple[int, ...]) -> bool:
        """Return whether `tokens` start with this pattern."""
        return tokens[: len(self)] == self

    def __repr__(self) -> str:
        shown = (repr(name) if isinstance(name, str) else hexadecimal(name) for name in self.names)
        return f"Pattern({', '.join(shown)})"


def collisions(names: Iterable[int | str]) -> dict[int, list[int | str]]:
    """Return each token that two or more different names share, with those names."""
    by_token: dict[int, list[int | str]] = {}
    for name in dict.fromkeys(names):
        by_token.setdefault(token(name), []).append(name)
    return {t: shared for t, shared in by_token.items() if len(shared) > 1}


def check_tokens(names: Iterable[int | str]) -> None:
    """Raise `TokenError` if different names have the same token; the error lists all of them."""
    found = collisions(names)
    if found:
        lines = (
            f"{' and '.join(map(repr, shared))} are all token {hexadecimal(t)}" for t, shared in found.items()
        )
        raise TokenError("; ".join(lines))
