"""Numbers as options of jobs, within bounds: what is out of range is wrong use, and no strange answer."""

import argparse
from collections.abc import Callable
from math import nan
from typing import Final

COUNT_MAX: Final = (1 << 31) - 1
"""The most that engines take as a number of rows. As milliseconds it is some weeks."""
_DIGITS: Final = 19  # more of a word are not read


def whole(least: int, most: int = COUNT_MAX) -> Callable[[str], int]:
    """Return a parser of whole numbers from `least` to `most`. It raises argparse's error."""

    def parse(word: str) -> int:
        digits = word.removeprefix("-")
        is_whole = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
        if not is_whole or not least <= int(word) <= most:
            raise argparse.ArgumentTypeError(f"{word!r} is no whole number from {least} to {most}")
        return int(word)

    return parse


def between(least: float, most: float) -> Callable[[str], float]:
    """Return a parser of numbers from `least` to `most`. It raises argparse's error.

    Times have bounds by which an engine can count them in ns.
    """

    def parse(word: str) -> float:
        try:
            number = float(word)
        except ValueError:
            number = nan
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{word!r} is no number from {least:g} to {most:g}")
        return number

    return parse


SPAN_MS: Final = between(1e-6, 1e12)
"""A time in ms, as an option."""
SPAN_S: Final = between(1e-3, 1e9)
"""A time in seconds, as an option."""
