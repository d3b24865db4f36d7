"""Names with planted collisions and gaps, for the package: the `tokens` job must find them.

Colliding names are searched among 400,000 tags of random letters, of which some twenty pairs share a token.
(No two numbered tags share one: the hash is linear, and their letters differ too little.)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bus.wire.pattern import token

FILE: Final = "names.txt"
_POOL: Final = 400_000
_LETTERS: Final = 8
_PLACES: Final = tuple(reversed(range(_LETTERS)))
_MASK: Final = np.uint64(0xFFFFFFFF)


class Names(NamedTuple):
    """Names: `known` are written to the file; `collisions` maps a shared token to the names that have it."""

    known: list[str]
    collisions: dict[int, list[str]]


def plant(wanted: Sequence[str], count: int, collisions: int, seed: int = 1) -> Names:
    """Return `wanted`, tags that share no token up to `count` names, and `collisions` pairs that share one.

    Raises `ValueError` if the tags have fewer such pairs.
    """
    numbers = np.unique(np.random.default_rng(seed).integers(0, 26**_LETTERS, _POOL + count))
    tokens = tag_tokens(numbers)
    found, first, times = np.unique(tokens, return_index=True, return_counts=True)
    shared = found[times == 2][:collisions]
    if len(shared) < collisions:
        raise ValueError(f"{len(shared)} pairs of names share a token, not {collisions}: try another seed")
    taken = {token(name) for name in wanted}
    fill = max(0, count - len(wanted) - 2 * collisions)
    alone = [tag(numbers[n]) for n in first[times == 1][: fill + len(taken)] if int(tokens[n]) not in taken]
    pairs = {int(one): sorted(tag(numbers[n]) for n in np.flatnonzero(tokens == one)) for one in shared}
    return Names([*wanted, *alone[:fill], *(name for pair in pairs.values() for name in pair)], pairs)


def tag(number: int) -> str:
    return "".join(chr(ord("a") + int(number) // 26**place % 26) for place in _PLACES)


def tag_tokens(numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the tokens of tags, as `bus.wire.pattern.token` does, but one column of characters at a time."""
    h = np.zeros(len(numbers), np.uint64)
    for place in _PLACES:
        letter = (numbers // 26**place % 26 + ord("a")).astype(np.uint64)
        h = (h * np.uint64(65599) + letter) & _MASK
    return (h ^ h >> np.uint64(16)).astype(np.uint32)


def write(directory: Path, names: Names) -> None:
    """Write the names, one a line, as `buscoupler pipeline tokens --names` reads them."""
    (directory / FILE).write_text("\n".join(names.known) + "\n")
