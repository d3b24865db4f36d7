"""The judge of a parser: what it may do with an input, and how much work that may be."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final
from zlib import crc32

from tests.fuzz import work
from tests.fuzz.mutate import divided, mutated
from tests.fuzz.target import Pieces, Target

FOUND: Final = Path(__file__).with_name("found")
"""Inputs that once broke a parser, in a directory for each target."""

_SPLITS: Final = 4
"""Each input so far is also fed in pieces."""


class Broken(AssertionError):
    """A parser did with `data` what it must not do."""

    def __init__(self, target: Target, data: bytes, why: str) -> None:
        shown = data.hex() if len(data) <= 400 else f"{data[:400].hex()}... ({len(data)} bytes)"
        super().__init__(f"{target.name}: {why}\ninput: {shown}")
        self.target, self.data = target.name, data


def result(target: Target, pieces: Pieces) -> object:
    """Return what the parser makes of an input, or the name of its verdict. Raises `Broken`."""
    try:
        return target.feed(pieces)
    except target.verdicts as verdict:
        return type(verdict).__name__
    except Exception as error:
        why = f"{type(error).__name__}: {str(error)[:500]}"
        raise Broken(target, b"".join(pieces), why) from error


def judge(target: Target, data: bytes, chance: Random) -> None:
    """Feed an input whole, and some in pieces: both must give the same. Raises `Broken`."""
    found = result(target, [data])
    if not target.whole and chance.random() * _SPLITS < 1:
        pieces = divided(data, chance)
        again = result(target, pieces)
        if again != found:
            why = f"in pieces of {list(map(len, pieces))} bytes, it is not\n{found}\nbut\n{again}"
            raise Broken(target, data, why[:2000])


def fuzz(target: Target, inputs: int, seed: int) -> None:
    """Judge the parser by mutated seeds. Raises `Broken`, which says how to do it again."""
    chance = Random(seed)
    for number, data in zip(range(inputs), mutated(target.seeds(), chance), strict=False):
        try:
            judge(target, data, chance)
        except Broken as broken:
            broken.add_note(
                f"input {number}; the same inputs again: FUZZ_SEED={seed} python -m pytest tests/fuzz"
            )
            raise


def keep(broken: Broken) -> Path:
    """Keep the input that broke a parser in `FOUND`, for every run from now on. Return its file."""
    place = FOUND / broken.target
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{crc32(broken.data):08x}"
    path.write_bytes(broken.data)
    return path


def found(target: Target) -> list[Path]:
    """Return the files with inputs that once broke a parser."""
    return sorted((FOUND / target.name).glob("*"))


def lines_of(target: Target, pieces: Pieces) -> int:
    """Count the lines of Python that a parser executes for an input: its work, whatever the machine."""
    return work.lines_of(lambda: result(target, pieces))


_CHARACTERS: Final = (
    b"\0",
    b"\xff",
    b"\x80",
    b"[",
    b'"',
    b"{",
    b"\\",
    b"/",
    b" ",
    b"\r\n",
    b"<",
    b"a",
    b"\xff\xfa",
)


def families(target: Target, size: int, grown_bytes: int = sys.maxsize) -> Iterator[tuple[bytes, bytes]]:
    """Yield pairs of inputs, of about `size` and twice as many bytes.

    They are a seed or an odd character, repeated, or one message that grows: to `size` parts, or as many as
    are in `grown_bytes`.
    """
    parts = size
    while any(len(data) > grown_bytes for data in target.grown(2 * parts)):
        parts //= 2
    yield from zip(target.grown(parts), target.grown(2 * parts), strict=True)
    for unit in (*target.seeds(), *_CHARACTERS):
        times = max(1, size // max(1, len(unit)))
        yield unit * times, unit * (2 * times)


def in_bytes(data: bytes) -> Sequence[bytes]:
    return [data[at : at + 1] for at in range(len(data))]
