"""Sentences of NMEA 0183 as columns: the fields that are values, with their units. Pure, with Arrow.

A sentence of a type without a table has its fields by number, from 1.
"""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bus.quantity.sentences import LAT, LON, QUALITY, SENTENCES, STATUS, Field
from pipeline.signals.numerals import numbers_of

_FIELDS_MAX: Final = 64

Column = tuple[str, str, pa.Array | None, pa.Array | None]


def read(text: pa.Array, is_named: Callable[[str], bool]) -> Iterator[Column]:
    """Yield the values of sentences of any types: name, unit, numbers and texts, null where there is none.

    Names begin with the type of the sentence (`GGA.lat`), unless it `is_named` elsewhere. As on a gateway
    (`bus.quantity.sentences`), a sentence that calls itself invalid has no other values.
    """
    body = pc.fill_null(pc.replace_substring_regex(pc.utf8_trim(text, "\r\n "), r"\*[0-9A-Fa-f]{2}$", ""), "")
    counts = pc.count_substring(body, ",")
    fields = pc.split_pattern(pc.binary_join_element_wise(body, "," * _FIELDS_MAX, ""), ",")
    types = pc.utf8_slice_codeunits(pc.list_element(fields, 0), -3, None)
    for kind in pc.unique(types).to_pylist():
        is_it = pc.equal(types, kind)
        most = min(pc.max(counts.filter(is_it)).as_py(), _FIELDS_MAX - 1)
        prefix = "" if is_named(kind) else f"{kind}."
        is_valid = pc.and_(is_it, _are_valid(kind, fields, counts))
        for place, name, unit in SENTENCES.get(kind) or _numbered(most):
            is_said = is_it if name in (STATUS, QUALITY) else is_valid
            column = pc.if_else(is_said, _field(fields, place), pa.scalar(None, pa.string()))
            yield (prefix + name, unit, *_values(fields, column, place, name))


def _are_valid(kind: str, fields: pa.Array, counts: pa.Array) -> pa.Array:
    """Return which sentences do not call themselves invalid, by the status or the quality that they have."""
    found = pa.array([True] * len(fields))
    for place, name, _ in SENTENCES.get(kind, ()):
        if name in (STATUS, QUALITY):
            text = pc.list_element(fields, place)
            is_good = pc.equal(text, "A") if name == STATUS else pc.not_equal(text, "0")
            found = pc.and_(found, pc.or_(is_good, pc.less(counts, place)))
    return found


def _numbered(most: int) -> Iterator[Field]:
    yield from (Field(place, str(place)) for place in range(1, most + 1))


def _field(fields: pa.Array, place: int) -> pa.Array:
    """Return one field of each sentence, null where it is empty or missing."""
    found = pc.list_element(fields, place)
    return pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)


def _values(
    fields: pa.Array, column: pa.Array, place: int, name: str
) -> tuple[pa.Array | None, pa.Array | None]:
    numbers = numbers_of(column)
    if name in (LAT, LON):
        degrees = pc.floor(pc.divide(numbers, 100.0))
        whole = pc.add(degrees, pc.divide(pc.subtract(numbers, pc.multiply(degrees, 100.0)), 60.0))
        is_minus = pc.fill_null(pc.is_in(_field(fields, place + 1), pa.array(["S", "W"])), False)
        return pc.if_else(is_minus, pc.negate(whole), whole), None
    texts = pc.if_else(pc.is_valid(numbers), pa.scalar(None, pa.string()), column)
    return numbers, texts if texts.null_count < len(texts) else None
