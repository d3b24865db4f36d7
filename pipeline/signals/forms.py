"""The forms of the data of messages that are no CAN frames, a column at a time. Pure, with Arrow and numpy.

A form is `text` (a number or a word), `number` (a double of 8 bytes, big-endian), `json`, `nmea`, or
`struct:FORMAT` in the notation of Python's struct. `divided` finds the forms of data of which none is known.
"""

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from pipeline.signals import nmea
from pipeline.signals.numerals import numbers_of

STRUCT: Final = "struct:"
FORMS: Final = ("text", "number", "json", "nmea")
_DEPTH: Final = 16
_MEMBERS_MAX: Final = 4096
_OPENED_MAX: Final = 512
_BLOCK_BYTES: Final = 1 << 24
_PRINTABLE: Final = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"

Flags = npt.NDArray[np.bool_]
Column: TypeAlias = "pa.Array | list[Any]"
"""The values of a member, one for each message."""


class Values(NamedTuple):
    """The values of one signal: `name` ("" for the only one of a message), and for each message a number, a
    text, or neither. A column may be None as a whole."""

    name: str
    unit: str
    numbers: pa.Array | None
    texts: pa.Array | None


def check(form: str) -> None:
    """Raise ValueError if there is no such form."""
    if form.startswith(STRUCT):
        try:
            struct.calcsize(form.removeprefix(STRUCT))
        except struct.error as error:
            raise ValueError(f"{form}: {error}") from None
    elif form not in FORMS:
        raise ValueError(f"{form}: a form is one of {', '.join(FORMS)}, {STRUCT}FORMAT")


def divided(data: pa.Array) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the forms that data of one pattern seem to have, each with the numbers of those that have it.

    Each is JSON or NMEA by itself, whatever stands beside it: how a capture is divided changes no value. Of 8
    bytes it can only be guessed whether they are a number: they are, unless all of that size are text.
    """
    is_json = _starts(data, rb"^\{")
    is_nmea = _starts(data, rb"^[$!][A-Za-z0-9]{3,10},")
    is_rest = ~(is_json | is_nmea)
    is_number = is_rest & _flags(pc.equal(pc.binary_length(data), 8))
    if is_number.any() and _is_text(data.filter(pa.array(is_number))):
        is_number = np.zeros(len(data), np.bool_)
    found = {"json": is_json, "nmea": is_nmea, "number": is_number, "text": is_rest & ~is_number}
    yield from ((form, np.flatnonzero(which)) for form, which in found.items() if which.any())


def _starts(data: pa.Array, pattern: bytes) -> Flags:
    return _flags(pc.match_substring_regex(data, pattern))


def _flags(known: pa.Array) -> Flags:
    which: Flags = pc.fill_null(known, False).to_numpy(zero_copy_only=False)
    return which


def _is_text(data: pa.Array) -> bool:
    text = _utf8(data)
    return text is not None and bool(pc.all(pc.match_substring_regex(text, _PRINTABLE)).as_py())


def read(
    form: str, data: pa.Array, is_text: bool = False, is_named: Callable[[str], bool] = lambda kind: False
) -> Iterator[Values]:
    """Yield the signals in a column of data. `is_text`: in the form `text` they are never numbers. `is_named`
    tells whether a pattern has the type of a sentence, which is not said again then."""
    if form == "number":
        yield Values("", "", _doubles(data, 8, ">f8"), None)
    elif form == "json":
        yield from _json(data)
    elif form == "nmea":
        text = _utf8(data)
        yield from () if text is None else (Values(*one) for one in nmea.read(text, is_named))
    elif form.startswith(STRUCT):
        yield from _struct(form.removeprefix(STRUCT), data)
    else:
        yield Values("", "", None, _utf8(data)) if is_text else _text(data)


def _utf8(data: pa.Array) -> pa.Array | None:
    """Return data as text, null where they are none; None if no data are text."""
    try:
        return data.cast(pa.string())
    except pa.ArrowInvalid:
        found = [_decoded(one) for one in data.to_pylist()]
        return pa.array(found, pa.string()) if any(one is not None for one in found) else None


def _decoded(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _text(data: pa.Array) -> Values:
    """Return numbers where the text is one, else the text; data that are no text are neither."""
    text = _utf8(data)
    if text is None:
        return Values("", "", None, None)
    numbers = numbers_of(text)
    rest = pc.if_else(pc.is_valid(numbers), pa.scalar(None, pa.string()), text)
    return Values("", "", numbers, rest if rest.null_count < len(rest) else None)


def _doubles(data: pa.Array, size: int, kind: str) -> pa.Array:
    """Return the numbers in data of one size, null for data of another."""
    whole = pc.fill_null(pc.equal(pc.binary_length(data), size), False)
    fixed = pc.if_else(whole, data, pa.scalar(bytes(size), pa.binary()))
    numbers = np.frombuffer(b"".join(fixed.to_pylist()), kind).astype(np.float64)
    return pa.array(numbers, mask=~np.asarray(whole.to_numpy(zero_copy_only=False)))


def _struct(form: str, data: pa.Array) -> Iterator[Values]:
    """Yield the fields of a struct by their numbers, from 0; the only field has no name."""
    size, rows = struct.calcsize(form), list[tuple[Any, ...] | None]()
    for one in data.to_pylist():
        rows.append(struct.unpack(form, one) if one is not None and len(one) == size else None)
    fields = len(struct.unpack(form, bytes(size)))
    for field in range(fields):
        column = [None if row is None else row[field] for row in rows]
        yield _mixed("" if fields == 1 else str(field), "", column)


def _mixed(name: str, unit: str, column: list[Any]) -> Values:
    """Return a column of Python's values: numbers and truth as numbers, text and bytes as text."""
    numbers = [_double(one) if isinstance(one, int | float) else None for one in column]
    texts = [
        _whole(one)
        if isinstance(one, str)
        else one.decode(errors="replace")
        if isinstance(one, bytes)
        else None
        for one in column
    ]
    has = any(one is not None for one in texts)
    return Values(name, unit, pa.array(numbers, pa.float64()), pa.array(texts, pa.string()) if has else None)


def _double(number: float) -> float:
    """Return a number as a double: one that is too large for it is infinite, as Arrow has it."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _whole(text: str) -> str:
    """Return a text with `?` in place of halves of characters, which JSON can write and nobody can store."""
    return text.encode(errors="replace").decode()


def _json(data: pa.Array) -> Iterator[Values]:
    """Yield the members of objects, those of inner ones as `gps.lat`. Of an object with `v`, `unit` and `t`
    this is the value alone, and of one with several in `v` these. Each object is one of these by itself."""
    table = _objects(data)
    columns = dict(_flat(table, "")) if table is not None else _walked(data)
    inner = [name for name in columns if name.startswith("v.")]
    others = [name for name in columns if name not in (*inner, "v", "unit", "t")]
    has_more, has_inner = (_any_valid(columns, names, len(data)) for names in (others, inner))
    has_value, has_unit = (_any_valid(columns, [name], len(data)) for name in ("v", "unit"))
    is_one = ~has_more & ~has_inner
    is_several = ~has_more & has_inner & ~has_value & ~has_unit
    if "v" in columns:
        units = columns.get("unit", [None] * len(data))
        words = units if isinstance(units, list) else units.to_pylist()
        for values in where(_column("", "", columns["v"]), is_one):
            yield from _by_unit(values, words)
    for name in inner:
        yield from where(_column(name.removeprefix("v."), "", columns[name]), is_several)
    for name, one in list(columns.items())[:_MEMBERS_MAX]:
        yield from where(_column(name, "", one), ~is_one & ~is_several)


def _any_valid(columns: "Mapping[str, Column]", names: Iterable[str], count: int) -> Flags:
    """Return in which rows one of some columns has a value."""
    found = np.zeros(count, np.bool_)
    for one in (columns[name] for name in names if name in columns):
        if isinstance(one, list):
            found |= np.array([value is not None for value in one], np.bool_)
        else:
            found |= one.is_valid().to_numpy(zero_copy_only=False)
    return found


def where(values: Values, which: Flags) -> Iterator[Values]:
    """Yield the values of some rows, null elsewhere; nothing for none."""
    if which.all() or not which.any():
        yield from [values] * bool(len(which) and which[0])
        return
    mask = pa.array(which)
    numbers, texts = (
        None if one is None else pc.if_else(mask, one, pa.scalar(None, one.type))
        for one in (values.numbers, values.texts)
    )
    yield values._replace(numbers=numbers, texts=texts)


def _by_unit(values: Values, units: list[Any]) -> Iterator[Values]:
    """Yield values for each unit that messages name, and those without one."""
    words = np.array(["" if one is None else _whole(str(one)) for one in units], object)
    for unit in dict.fromkeys(words.tolist()):
        yield from where(values._replace(unit=unit), words == unit)


def _objects(data: pa.Array) -> pa.Table | None:
    """Return one row of members for each object; None if Arrow cannot read all of them as one table.

    What is nested deeply is not for Arrow, whose stack has no limit: the process would end.
    """
    opened = pc.add(pc.count_substring(data, b"{"), pc.count_substring(data, b"["))
    if (pc.max(opened).as_py() or 0) > _OPENED_MAX:
        return None
    lines = pc.replace_substring(data, b"\n", b" ")
    text = b"\n".join(one or b"{}" for one in lines.to_pylist()) + b"\n"
    try:
        data.cast(pa.string())  # of other bytes Arrow would make texts that nobody can read
        table = _read(text, None)
        as_sent = pa.schema([field.with_type(_as_sent(field.type)) for field in table.schema])
        if as_sent != table.schema:
            table = _read(text, as_sent)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return table if len(table) == len(data) else None


def _read(text: bytes, schema: pa.Schema | None) -> pa.Table:
    options = arrow_json.ReadOptions(use_threads=False, block_size=max(_BLOCK_BYTES, len(text)))
    return arrow_json.read_json(BytesIO(text), options, arrow_json.ParseOptions(explicit_schema=schema))


def _as_sent(kind: pa.DataType, depth: int = 0) -> pa.DataType:
    """Return a type with texts in place of the times that Arrow makes of them, and writes in its own way."""
    if pa.types.is_struct(kind) and depth < _DEPTH:
        return pa.struct([field.with_type(_as_sent(field.type, depth + 1)) for field in kind])
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _flat(table: pa.Table, before: str, depth: int = 0) -> Iterator[tuple[str, pa.Array]]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_struct(whole.type) and depth < _DEPTH:
            fields = pa.table(dict(zip([f.name for f in whole.type], whole.flatten(), strict=True)))
            yield from _flat(fields, f"{before}{name}.", depth + 1)
        else:
            yield f"{before}{name}", whole


def _walked(data: pa.Array) -> "dict[str, Column]":
    """Return the members of objects that are not all alike, or not all JSON."""
    columns = dict[str, list[Any]]()
    for place, one in enumerate(data.to_pylist()):
        try:
            read = json.loads(one)
        except (ValueError, TypeError, RecursionError):
            continue
        members = dict(_members(read, "", 0)) if isinstance(read, dict) else {"": read}
        for name, value in ((_whole(name), value) for name, value in members.items()):
            if name in columns or len(columns) < _MEMBERS_MAX:
                columns.setdefault(name, [None] * len(data))[place] = value
    return dict(columns)


def _members(read: dict[str, Any], before: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in read.items():
        if isinstance(value, dict) and depth < _DEPTH:
            yield from _members(value, f"{before}{name}.", depth + 1)
        else:
            yield f"{before}{name}", value


def _column(name: str, unit: str, column: Column) -> Values:
    if isinstance(column, list):
        return _mixed(name, unit, column)
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        whole = column.cast(pa.int8()) if pa.types.is_boolean(kind) else column
        return Values(name, unit, whole.cast(pa.float64(), safe=False), None)
    if pa.types.is_string(kind):
        return Values(name, unit, None, column)
    return Values(name, unit, None, None)  # lists, and members that are always null
