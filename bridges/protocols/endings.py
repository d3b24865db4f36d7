"""The guess at what is wrong with input in which nothing ends: another end of lines, most often. Pure."""

from collections.abc import Sequence
from typing import Final

_NAMES: Final = {b"\n": "LF", b"\r": "CR", b"\xc0": "END", b"\x7e": "0x7E"}


def without_end(ends: Sequence[bytes], sample: bytes, guess: str) -> str:
    """Return `guess`, and before it that none of `ends` is in `sample`, the last bytes that came."""
    if not sample or any(end in sample for end in ends):
        return guess
    names = " or ".join(_NAMES.get(end, f'"{end.decode("latin-1")}"') for end in ends)
    return f"no {names} in the last {len(sample)}: {guess}"


def other_end(end: bytes, sample: bytes, guess: str) -> str:
    """Return what fits where lines end otherwise than at `end`. Many scales and meters send CR alone."""
    if not sample or end in sample:
        return guess
    if b"\r" in sample and b"\n" not in sample:
        return 'lines that end with CR: `delimiter: "\\r"`, in an endpoint `delimiter=%0D`'
    if b"\n" in sample:
        return "lines that end with LF: leave `delimiter` out"
    return without_end([end], sample, f"another delimiter, {guess}")
