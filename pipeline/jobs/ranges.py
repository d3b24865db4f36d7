"""Numbers as options of jobs, within bounds: what is out of range is wrong use, and no strange answer."""

import argparse
from collections.abc import Callable
from math import inf, isfinite

_DIGITS = 19  # of nanoseconds since 1970, the largest numbers here


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from `least` to `most`. It raises argparse's error."""

    def parse(word: str) -> int:
        digits = word.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS) or not least <= int(
            word
        ) <= (inf if most is None else most):
            raise argparse.ArgumentTypeError(f"{word!r} is no whole number {_range(least, most)}")
        return int(word)

    return parse


def above(bound: float, most: float | None = None) -> Callable[[str], float]:
    """Return a parser of numbers above `bound`, up to `most`. It raises argparse's error."""

    def parse(word: str) -> float:
        try:
            number = float(word)
        except ValueError:
            number = inf
        if not isfinite(number) or not bound < number <= (inf if most is None else most):
            end = f" and up to {most:g}" if most is not None else ""
            raise argparse.ArgumentTypeError(f"{word!r} is no number above {bound:g}{end}")
        return number

    return parse


def _range(least: int, most: int | None) -> str:
    return f"of at least {least}" if most is None else f"from {least} to {most}"
