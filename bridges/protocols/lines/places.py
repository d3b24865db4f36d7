"""Places in patterns and templates: `{kind}` stands for a group of a match, `{1}` for a token. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence

from bus.key_types import Names
from bus.wire.notation import token_in
from bus.wire.pattern import token

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*|[1-9][0-9]{0,2})\}")
_GROUP = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
DATA = "data"
"""The group that becomes the data of a frame, and the place of the data in a template."""
SIGN = "sign"
"""The group whose minus comes before the data, unless the pattern has a place for it."""


def places_in(text: str) -> list[str]:
    """Return the names and numbers of the places in a text, in order."""
    return _PLACE.findall(text)


def groups_in(expression: str) -> set[str]:
    """Return the names of the groups of an expression."""
    return set(_GROUP.findall(expression))


def places_of(names: Names) -> list[str]:
    """Return the names of the places in a pattern."""
    return [place for name in names if isinstance(name, str) for place in places_in(name)]


def check_sign(expression: str, names: Names = ()) -> None:
    """Raise ValueError for an expression whose sign would come before the data, and that has no data."""
    groups = groups_in(expression)
    if SIGN in groups - {*places_of(names)} and DATA not in groups:
        raise ValueError(f"match: a group sign comes before the group data: {expression[:64]} has none")


def start_of(names: Names) -> Names:
    """Return the beginning of a pattern that is the same for all frames: what stands before its places."""
    has_place = [isinstance(name, str) and bool(places_in(name)) for name in names]
    return names[: has_place.index(True)] if True in has_place else names


class Shape:
    """A pattern with places: `tokens` fills them."""

    def __init__(self, names: Names) -> None:
        self._parts = [name if isinstance(name, str) and places_in(name) else token(name) for name in names]

    def tokens(self, groups: Mapping[str, str]) -> tuple[int, ...]:
        """Return the tokens with the text of each group in its place."""
        return tuple(one if isinstance(one, int) else _filled_token(one, groups) for one in self._parts)


def _filled_token(part: str, groups: Mapping[str, str]) -> int:
    return token_in(_PLACE.sub(lambda place: groups[place[1]], part))


class Template:
    """A text with places for the data of a frame and for the tokens that follow the pattern: `{1}`, `{2}`.

    It is written in `codec`. `word(token)` writes a token.
    """

    def __init__(self, text: str, word: Callable[[int], bytes], codec: str) -> None:
        parts = _PLACE.split(text)
        self._pieces, self._places = [piece.encode(codec) for piece in parts[::2]], parts[1::2]
        self._word = word

    def values(self, tokens: Sequence[int], data: bytes) -> list[bytes] | None:
        """Return what stands in the places; None if a token is not there."""
        found = list[bytes]()
        for place in self._places:
            if place == DATA:
                found.append(data)
            elif int(place) > len(tokens):
                return None
            else:
                found.append(self._word(tokens[int(place) - 1]))
        return found

    def filled(self, values: Sequence[bytes]) -> bytes:
        """Return the text with these values in its places."""
        between = (part for pair in zip(self._pieces, values, strict=False) for part in pair)
        return b"".join((*between, self._pieces[-1]))
