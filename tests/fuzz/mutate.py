"""Mutation of inputs: valid ones are damaged in the ways in which peers, lines and files damage them."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

BYTES_MAX: Final = 8192
_EXTREMES: Final = tuple(
    value.to_bytes(size, order)
    for size in (1, 2, 4, 8)
    for value in (0, 1, (1 << 8 * size - 1) - 1, 1 << 8 * size - 1, (1 << 8 * size) - 1)
    for order in ("big", "little")
)
"""Lengths, counts and times at their ends, of each size and byte order."""
_ODD: Final = (
    *_EXTREMES,
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\x1b[2J",
    b"\r\n",
    b'"',
    b"\\",
    b"9" * 40,
    b"[" * 40,
    b"-1",
)

Change = Callable[[bytearray, Random, Sequence[bytes]], None]


def _place(data: bytearray, chance: Random) -> int:
    return int(chance.random() * (len(data) + 1))


def _piece(data: bytes | bytearray, chance: Random) -> bytes:
    start = int(chance.random() * (len(data) + 1))
    size = int(chance.random() ** 3 * (len(data) - start + 1))  # mostly short
    return bytes(data[start : start + size])


def flip(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    """Change one bit."""
    if data:
        data[int(chance.random() * len(data))] ^= 1 << int(chance.random() * 8)


def replace(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    """Set one byte to any value."""
    if data:
        data[int(chance.random() * len(data))] = int(chance.random() * 256)


def insert(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    at = _place(data, chance)
    data[at:at] = chance.randbytes(1 + int(chance.random() * 4))


def delete(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    at = _place(data, chance)
    del data[at : at + 1 + int(chance.random() ** 3 * len(data))]


def extreme(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    """Write a number at one of its ends, or another odd word, over what was there."""
    at, word = _place(data, chance), _ODD[int(chance.random() * len(_ODD))]
    data[at : at + len(word)] = word


def duplicate(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    """Repeat a piece, up to 32 times."""
    at, piece = _place(data, chance), _piece(data, chance)
    data[at:at] = piece * (1 + int(chance.random() ** 3 * 32))


def splice(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    """Put a piece of another input in."""
    at, other = _place(data, chance), pool[int(chance.random() * len(pool))]
    data[at : at + int(chance.random() * 8)] = _piece(other, chance)


def move(data: bytearray, chance: Random, pool: Sequence[bytes]) -> None:
    """Exchange what stands before a place and what stands behind it."""
    at = _place(data, chance)
    data[:] = data[at:] + data[:at]


CHANGES: Final[tuple[Change, ...]] = (flip, replace, extreme, insert, delete, duplicate, splice, move)


def mutated(seeds: Sequence[bytes], chance: Random) -> Iterator[bytes]:
    """Yield the seeds, and then without end a seed or the last input with one to four changes."""
    yield from seeds
    last = seeds[0]
    while True:
        data = bytearray(last if chance.random() < 0.25 else seeds[int(chance.random() * len(seeds))])
        for _ in range(1 + int(chance.random() ** 2 * 4)):
            CHANGES[int(chance.random() * len(CHANGES))](data, chance, seeds)
        last = bytes(data[:BYTES_MAX])
        yield last


def divided(data: bytes, chance: Random) -> list[bytes]:
    """Cut an input into up to eight pieces, or into bytes if it is short."""
    if len(data) < 64 and chance.random() < 0.25:
        return [data[at : at + 1] for at in range(len(data))]
    cuts = sorted(int(chance.random() * (len(data) + 1)) for _ in range(1 + int(chance.random() * 7)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
