"""Variants of a topology: its document with one setting changed, for each setting that a record there has.

They are drawn from the records that read the file (`bus.schema`), so a new setting has variants at once.
Values are tried, as some are right only beside others.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from bus.errors import BusError
from bus.schema import (
    ByGateway,
    Called,
    Check,
    KindOf,
    Owned,
    Range,
    Record,
    Ref,
    alternatives,
    members,
    problem,
    settings,
    unwrap,
)
from tests.appliance.plants import Site
from topologies.checks.checker import check_wired
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.model import Topology
from topologies.wiring.segments import Wiring, wired

_TRIES: Final = 25
_GONE: Final = object()
_NAMES: Final = frozenset({"b", "c", "gw", "far", "br", "k", "m", "w", "main", "sp"})
_WORDS: Final = """
    DIR/others.txt DIR/two.key DIR/other/ca.pem DIR/other/own.pem DIR/two.dbc DIR/two.token DIR/elsewhere
    other.example 127.0.0.3 127.0.0.0/16 239.9.42.78 localhost lo vcan97 slcan b c gw br br/0 x* none 0x300 .*
    tcp://127.0.0.1:PORT5 tls+tcp://127.0.0.1:PORT5 http://127.0.0.1:PORT5 https://127.0.0.1:PORT5/y
    https://b.example smtp://127.0.0.1:26 z@y.example /bin/false u32 latin-1 0013A20040A1B2C4 Cells 1.7.0
"""
_TEXTS: Final = (*_WORDS.split(), "has b", "\r", "{data}!", "W?", "W {data}")
_KEYS: Final = ("m/n", "0x105", "3", "Cells", "other", "0", "0013A20040A1B2C4")


class Place(NamedTuple):
    """A setting in a document: its path, the record that reads it, its key there, and its value."""

    path: tuple[Any, ...]
    record: type[Record]
    key: str
    annotation: Any
    value: Any


class Variant(NamedTuple):
    """A document with another value of a setting, in words, and its wiring."""

    words: str
    wiring: Wiring


def accepted(document: Mapping[str, Any]) -> Wiring:
    """Return the wiring of a document. Raises `InvalidTopology` if `run` would refuse it."""
    wiring = wired(loads(json.dumps(document)))
    errors = [one for one in check_wired(wiring) if one.level == "error"]
    if errors:
        raise InvalidTopology(errors)
    return wiring


def records() -> set[type[Record]]:
    """Return all records of a topology."""
    return set(_reached(Topology, set()))


def _reached(found: Any, seen: set[type[Record]]) -> set[type[Record]]:
    bare, markers = unwrap(found)
    for kinds in (one.kinds for one in markers if isinstance(one, KindOf | Called)):
        for key in kinds.ours():
            _reached(kinds.find(key), seen)
        return seen
    if isinstance(bare, type) and issubclass(bare, Record):
        _enter(bare, seen)
    for one in get_args(bare):
        if one is not Ellipsis and not isinstance(one, str | int):
            _reached(one, seen)
    return seen


def _enter(record: type[Record], seen: set[type[Record]]) -> None:
    if record in seen:
        return
    seen.add(record)
    choice = alternatives(record)
    if choice:
        for key in choice[1].kinds.ours():
            _reached(choice[1].kinds.find(key), seen)
    for one in settings(record).values():
        _reached(one.annotation, seen)


def places(document: Any, record: type[Record] = Topology, path: tuple[Any, ...] = ()) -> Iterator[Place]:
    """Yield all settings of a document's records, also those that it leaves out."""
    if not isinstance(document, dict):
        return
    choice = alternatives(record)
    for key, one in settings(record).items():
        yield Place((*path, key), record, key, one.annotation, document.get(key))
    for key, value in document.items():
        if key in settings(record):
            yield from _inside(value, settings(record)[key].annotation, (*path, key))
        elif choice and (kind := choice[1].kinds.find(key)):
            yield from _inside(value, kind, (*path, key))


def _inside(value: Any, annotation: Any, path: tuple[Any, ...]) -> Iterator[Place]:
    bare, outer = unwrap(annotation)
    for member in members(bare):
        inner, markers = unwrap(member)
        yield from _of_member(value, inner, (*markers, *outer), path)


def _of_member(value: Any, bare: Any, markers: tuple[Any, ...], path: tuple[Any, ...]) -> Iterator[Place]:
    origin, kinds = get_origin(bare), next((one for one in markers if isinstance(one, KindOf | Called)), None)
    if isinstance(kinds, Called):
        for key in value if isinstance(value, dict) else ():
            yield from places(value[key], kinds.kinds.find(key) or Record, (*path, key))
    elif kinds is not None:
        kind = next((kinds.kinds.find(key) for key in value if key in kinds.kinds.all()), None)
        yield from places(value, kind or Record, path)
    elif origin in (ByGateway, Owned):
        yield from _inside(value, get_args(bare)[0], path)
    elif isinstance(bare, type) and issubclass(bare, Record):
        yield from places(value, bare, path)
    elif origin is tuple:
        for number, one in enumerate(value) if isinstance(value, list) else ():
            yield from _inside(one, get_args(bare)[0], (*path, number))
    elif origin is Mapping:
        for key in value if isinstance(value, dict) else ():
            yield from _inside(value[key], get_args(bare)[1], (*path, key))


def variants(site: Site, document: dict[str, Any], place: Place) -> Iterator[Variant]:
    """Yield the documents with another value of a setting that a gateway would take."""
    for value in islice(_others(place.annotation, place.value), _TRIES):
        filled = value if value is _GONE else json.loads(site.filled(json.dumps(value)))
        if filled == place.value:
            continue
        try:
            wiring = accepted(_put(document, place.path, filled))
        except BusError:
            continue
        path = ".".join(map(str, place.path))
        words = f"{path} = {'gone' if value is _GONE else value!r} instead of {place.value!r}"
        yield Variant(words, wiring)


def _put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(document)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if value is _GONE:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return made


def _others(annotation: Any, value: Any) -> Iterator[Any]:
    """Yield values of a type, other ones than `value` where that is easy to say."""
    bare, markers = unwrap(annotation)
    if any(isinstance(one, Called | KindOf) for one in markers):
        return
    if len(members(bare)) > 1:
        for member in members(bare):
            if member is not type(None):
                yield from _others(member, value)
        yield from () if value is None or type(None) not in members(bare) else (_GONE,)
        return
    origin = get_origin(bare)
    if origin in (ByGateway, Owned):
        yield from _others(get_args(bare)[0], value)
    elif isinstance(bare, type) and issubclass(bare, Record):
        yield from _records(bare)
    elif origin is tuple:
        yield from _lists(get_args(bare)[0], value)
    elif origin is Mapping:
        yield from _mappings(get_args(bare)[1], value)
    elif origin is Literal:
        yield from (one for one in get_args(bare) if one != value)
    else:
        yield from _scalars(bare, markers, value)


def _records(record: type[Record]) -> Iterator[Any]:
    known = settings(record)
    if record.SHORT:
        yield from _others(known[record.SHORT].annotation, None)
    for key, one in known.items():
        if {name for name, other in known.items() if other.required} <= {key}:
            yield from ({key: value} for value in islice(_others(one.annotation, None), 5))


def _lists(item: Any, value: Any) -> Iterator[Any]:
    now = value if isinstance(value, list) else [value] if value is not None else []
    yield from ([one] for one in _others(item, now[0] if now else None))
    yield from ([],) if now else ()
    yield from ([*now, one] for one in islice(_others(item, None), 5))


def _mappings(item: Any, value: Any) -> Iterator[Any]:
    now = value if isinstance(value, dict) else {}
    for key in _KEYS:
        yield from ({**now, key: one} for one in islice(_others(item, None), 5))


def _scalars(bare: Any, markers: tuple[Any, ...], value: Any) -> Iterator[Any]:
    if bare is bool:
        yield from (not value, bool(value))
    elif bare is str:
        wanted = [one for one in markers if isinstance(one, Check)]
        is_name = any(isinstance(one, Ref) for one in markers)
        texts = (one for one in _TEXTS if one != value and (not is_name or one in _NAMES or "://" in one))
        yield from (one for one in texts if not any(problem(check, one) for check in wanted))
    elif bare in (int, float):
        yield from _numbers(bare, markers, value)


def _numbers(bare: Any, markers: tuple[Any, ...], value: Any) -> Iterator[Any]:
    low, high = next(((one.low, one.high) for one in markers if isinstance(one, Range)), (0, 1 << 20))
    now = value if isinstance(value, int | float) and not isinstance(value, bool) else low
    for number in (now + 1, now * 2, now - 1, 5000, 9500, 70_000, 1 << 21, 3, 9, 2, 1, 0, 0.25, low, high):
        if low <= number <= high and number != value and (bare is float or number == int(number)):
            yield bare(number)


def spelled(text: str) -> str:
    """Return a text without what differs from one object to the next."""
    return re.sub(r" at 0x[0-9a-f]+|(?<=\d)\.0\b", "", text)
