"""Names with planted collisions and gaps, for `benchmarks.planted`: what the `tokens` job must find.

Colliding names are looked for among 400,000 tags of random letters, which hold some twenty pairs with one
token. (Numbered tags hold none: the hash is linear, and their letters differ too little.)
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
    """`known` names that are written; `collisions`: a token that several of them have, with those."""

    known: list[str]
    collisions: dict[int, list[str]]


def plant(wanted: Sequence[str], count: int, collisions: int, seed: int = 1) -> Names:
    """`wanted`, tags up to `count` names that share no token, and `collisions` pairs that do.

    Raises `ValueError` where the tags hold fewer pairs.
    """
    numbers = np.unique(np.random.default_rng(seed).integers(0, 26**_LETTERS, _POOL + count))
    tokens = tag_tokens(numbers)
    found, first, times = np.unique(tokens, return_index=True, return_counts=True)
    shared = found[times == 2][:collisions]
    if len(shared) < collisions:
        raise ValueError(f"{len(shared)} pairs of names share a token, not {collisions}")
    taken = {token(name) for name in wanted}
    fill = max(0, count - len(wanted) - 2 * collisions)
    alone = [tag(numbers[n]) for n in first[times == 1][: fill + len(taken)] if int(tokens[n]) not in taken]
    pairs = {int(one): sorted(tag(numbers[n]) for n in np.flatnonzero(tokens == one)) for one in shared}
    return Names([*wanted, *alone[:fill], *(name for pair in pairs.values() for name in pair)], pairs)


def tag(number: int) -> str:
    return "".join(chr(ord("a") + int(number) // 26**place % 26) for place in _PLACES)


def tag_tokens(numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The tokens of tags: `bus.wire.pattern.token`, a column of characters at a time."""
    h = np.zeros(len(numbers), np.uint64)
    for place in _PLACES:
        letter = (numbers // 26**place % 26 + ord("a")).astype(np.uint64)
        h = (h * np.uint64(65599) + letter) & _MASK
    return (h ^ h >> np.uint64(16)).astype(np.uint32)


def write(directory: Path, names: Names) -> None:
    """One a line, as `buscoupler tokens --names` reads them."""
    (directory / FILE).write_text("\n".join(names.known) + "\n")
