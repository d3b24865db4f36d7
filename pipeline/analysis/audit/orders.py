"""Orders of rows by several columns of numbers. Pure, with numpy.

Columns are packed into words of 63 bits that end with the number of the row: numpy sorts words many times as
fast as it finds the order of columns (`lexsort`).
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_BITS: Final = 63


def ordered(*columns: npt.NDArray[Any]) -> Ints:
    """Return the order of rows by columns, the first of which counts most. Rows that are equal in all stay as
    they were."""
    return _order(_words(columns))


def groups(*columns: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return an order in which rows that are equal in all columns follow each other, those of one group as
    they were; and the place there at which each group begins. The first column counts most."""
    words = _words(columns)
    order = _order(words)
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for word in words:
        its = word[order]
        is_new[1:] |= its[1:] != its[:-1]
    return order, np.flatnonzero(is_new)


def _order(words: list[Ints]) -> Ints:
    *rest, last = words
    order = _order_of(last)
    for word in reversed(rest):
        order = order[_order_of(word[order])]
    return order


def _order_of(word: Ints) -> Ints:
    bits = len(word).bit_length()
    found = word << bits
    found |= np.arange(len(word))
    found.sort()
    found &= (1 << bits) - 1
    return found


def _words(columns: tuple[npt.NDArray[Any], ...]) -> list[Ints]:
    """Pack columns: rows are in the order of these words as they are in that of the columns. Each word leaves
    room for the number of a row."""
    room = _BITS - len(columns[0]).bit_length()
    words, left = list[Ints](), -1
    for values, width in (_narrowed(column, room) for column in columns):
        if width <= left:
            words[-1] = words[-1] << width | values
        else:
            words.append(values)
            left = room
        left -= width
    return words


def _narrowed(column: npt.NDArray[Any], room: int) -> tuple[Ints, int]:
    """Return numbers from 0 that are in the order of a column, and how many bits they have: its distances
    from the least; if these do not fit, its ranks."""
    if not len(column):
        return np.zeros(0, np.int64), 0
    least, most = int(column.min()), int(column.max())
    if (width := (most - least).bit_length()) <= room:
        return column.astype(np.int64) - least, width
    known, rank = np.unique(column, return_inverse=True)
    return rank, len(known).bit_length()
