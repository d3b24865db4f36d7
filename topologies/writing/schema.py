"""The JSON Schema of topology files for editors, generated from the model.

`python -m topologies.writing.schema` renews the file that is shipped. It is about shape: keys, types, ranges
and choices. It does not know which names there are, nor what makes an address or a path; `check` does.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from bus.key_types import NAME, check_name
from bus.kinds import Kinds
from bus.schema import (
    ByGateway,
    Called,
    Check,
    KindOf,
    Length,
    Notation,
    Owned,
    Range,
    Record,
    Ref,
    Setting,
    Single,
    alternatives,
    default_of,
    members,
    settings,
    unwrap,
)
from topologies.model import Topology

FILE = Path(__file__).parents[1] / "topology.schema.json"
Json = dict[str, Any]
_SIMPLE = {bool: "boolean", int: "integer", float: "number", str: "string"}
_NAME = f"^{NAME.pattern}$"
_VARIABLE: Json = {"type": "string", "pattern": r"\$\{"}
_WORDS = "Values may hold ${NAME} or ${NAME:-DEFAULT}, variables of the environment."


def schema(every: bool = False) -> Json:
    """Return the schema, of draft 7, which editors know; with `every`, also for media and devices of other
    installed distributions.
    """
    made = _Definitions(every)
    root = made.record(Topology, by_gateway=False)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "buscoupler topology",
        "description": f"{Topology.__doc__} {_WORDS}",
        **root,
        "definitions": dict(sorted(made.found.items())),
    }


def text(every: bool = False) -> str:
    """Return the text of the schema's file, which ends with a newline."""
    return json.dumps(schema(every), indent=1, ensure_ascii=False) + "\n"


class _Place(NamedTuple):
    """The place of a value: whether it may be given by gateway, and the markers of its annotation."""

    by_gateway: bool
    markers: tuple[Any, ...] = ()


class _Definitions:
    """The records that have been described so far, by name."""

    def __init__(self, every: bool) -> None:
        self._every = every
        self.found: dict[str, Json] = {}

    def record(self, cls: type[Record], by_gateway: bool) -> Json:
        """Return a reference to the definition of a record, and make that if it is not there."""
        name = cls.__name__.removesuffix("Spec") + ("-by-gateway" if by_gateway else "")
        if name not in self.found:
            self.found[name] = {}  # so that a record may refer to itself
            self.found[name] = self._described(cls, by_gateway)
        return {"$ref": f"#/definitions/{name}"}

    def _described(self, cls: type[Record], by_gateway: bool) -> Json:
        known, choice = settings(cls), alternatives(cls)
        properties = {key: self._setting(one, by_gateway) for key, one in known.items()}
        kinds = self._kinds(choice[1].kinds) if choice else {}
        properties |= {key: self._value(kind, _Place(by_gateway)) for key, kind in kinds.items()}
        whole: Json = {
            "type": "object",
            "description": cls.__doc__ or "",
            "properties": properties,
            "additionalProperties": False,
        }
        required = [key for key, one in known.items() if one.required]
        whole |= {"required": required} if required else {}
        if choice:
            whole["oneOf"] = [{"required": [key]} for key in (*choice[1].beside, *kinds)]
        return self._shortened(cls, whole, required)

    def _shortened(self, cls: type[Record], whole: Json, required: list[str]) -> Json:
        """Add what may stand in place of the mapping: the value of one field, or nothing."""
        options = [whole]
        if cls.SHORT and set(required) <= {cls.SHORT}:
            options.append(self._value(settings(cls)[cls.SHORT].annotation, _Place(False)))
        if not required and "oneOf" not in whole:
            options.append({"type": "null"})
        return _any(options)

    def _kinds(self, kinds: Kinds[Any]) -> dict[str, type[Record]]:
        keys = kinds.all() if self._every else kinds.ours()
        return {key: kind for key in keys if (kind := kinds.find(key))}

    def _setting(self, one: Setting, by_gateway: bool) -> Json:
        value = self._value(one.annotation, _Place(by_gateway))
        whole = {"allOf": [value]} if "$ref" in value else value  # beside a reference nothing counts
        return {**whole, **({"description": one.doc} if one.doc else {}), **_default(one)}

    def _value(self, annotation: Any, place: _Place) -> Json:
        """Return the schema of a value; also of a mapping from gateways to such values, where that may be."""
        bare, markers = unwrap(annotation)
        if get_origin(bare) is ByGateway:
            return self._value(get_args(bare)[0], _Place(True))
        plain = self._plain(bare, _Place(place.by_gateway, (*place.markers, *markers)))
        if not place.by_gateway or get_origin(bare) is Mapping:
            return plain
        chosen = self._plain(bare, _Place(False, (*place.markers, *markers)))
        return _any([plain, self._chosen(bare, chosen, 2)])

    def _chosen(self, bare: Any, chosen: Json, least: int) -> Json:
        """Return the schema of a mapping from gateways to values."""
        keys = {"pattern": _NAME, "not": {"enum": sorted(self._keys(bare))}}
        return {
            "type": "object", "minProperties": least, "propertyNames": keys, "additionalProperties": chosen,
        }  # fmt: skip

    def _owned(self, bare: Any) -> Json:
        plain = self._plain(bare, _Place(False))
        return _any([plain, self._chosen(bare, plain, 1)])

    def _keys(self, bare: Any) -> list[str]:
        """Return the keys of the record that may stand there, which are no gateways then."""
        found = list[str]()
        for one in members(bare):
            one = unwrap(one)[0]
            if isinstance(one, type) and issubclass(one, Record):
                choice = alternatives(one)
                found += [*settings(one), *(choice[1].kinds.ours() if choice else ())]
        return found

    def _plain(self, bare: Any, place: _Place) -> Json:
        origin = get_origin(bare)
        if isinstance(bare, type) and issubclass(bare, Record):
            return self._record_of(bare, place)
        if origin is Owned:
            return self._owned(get_args(bare)[0])
        if origin is tuple:
            return self._list(get_args(bare)[0], place)
        if origin is Mapping:
            return self._mapping(get_args(bare), place)
        if origin is Literal:
            return _any([{"enum": list(get_args(bare))}, _VARIABLE])
        if len(members(bare)) > 1:
            return _any([self._member(one, place) for one in members(bare)])
        return _scalar(bare, place.markers)

    def _member(self, one: Any, place: _Place) -> Json:
        if one is type(None):
            return {"type": "null"}
        inner, markers = unwrap(one)
        return self._plain(inner, _Place(place.by_gateway, (*place.markers, *markers)))

    def _record_of(self, cls: type[Record], place: _Place) -> Json:
        called = next((marker for marker in place.markers if isinstance(marker, Called)), None)
        if called is not None:
            return self._called(called, place.by_gateway)
        kind_of = next((marker for marker in place.markers if isinstance(marker, KindOf)), None)
        if kind_of is None:
            return self.record(cls, place.by_gateway)
        kinds = self._kinds(kind_of.kinds)
        return {"oneOf": [self.record(kind, place.by_gateway) for kind in kinds.values()]}

    def _called(self, called: Called, by_gateway: bool) -> Json:
        """Return the schema of a record that is called by its name: that alone, or with its settings."""
        kinds = self._kinds(called.kinds)
        alone = [name for name, kind in kinds.items() if not any(s.required for s in settings(kind).values())]
        named = {name: self.record(kind, by_gateway) for name, kind in kinds.items()}
        whole = {"type": "object", "properties": named, "additionalProperties": False}
        return _any([{"enum": alone}, {**whole, "minProperties": 1, "maxProperties": 1}])

    def _list(self, item: Any, place: _Place) -> Json:
        """Return the schema of a list; also of one item, or of a text that stands for it."""
        options: list[Json] = [{"type": "array", "items": self._value(item, _Place(place.by_gateway))}]
        options[0] |= _bounds(place.markers, "Items")
        if any(isinstance(marker, Notation) for marker in place.markers):
            options.append({"type": "string"})
        if any(isinstance(marker, Single) for marker in place.markers):
            options.append(self._value(item, _Place(place.by_gateway)))
        return _any(options)

    def _mapping(self, types: Sequence[Any], place: _Place) -> Json:
        key, value = types
        names = next((m for m in unwrap(key)[1] if isinstance(m, Check)), None)
        keys = {"propertyNames": {"pattern": _NAME}} if names and names.function is check_name else {}
        values = self._value(value, _Place(place.by_gateway))
        return {
            "type": "object",
            "additionalProperties": values,
            **keys,
            **_bounds(place.markers, "Properties"),
        }


def _scalar(bare: Any, markers: Sequence[Any]) -> Json:
    made: Json = {"type": _SIMPLE[bare]}
    for marker in markers:
        if isinstance(marker, Range):
            made |= {"minimum": marker.low, "maximum": marker.high}
        elif (isinstance(marker, Check) and marker.function is check_name) or (
            isinstance(marker, Ref) and marker.address is None
        ):
            made["pattern"] = _NAME
    if "pattern" in made or bare is not str:
        return _any([made, _VARIABLE])
    return made


def _bounds(markers: Sequence[Any], what: str) -> Json:
    found = [marker for marker in markers if isinstance(marker, Length)]
    if not found:
        return {}
    return {f"min{what}": max(one.low for one in found), f"max{what}": min(one.high for one in found)}


def _default(one: Setting) -> Json:
    value: Any = default_of(one)
    simple = isinstance(value, bool | int | float | str) and not is_dataclass(value)
    return {"default": value} if simple else {}


def _any(options: Sequence[Json]) -> Json:
    """Return what fits one of several schemas, each named once."""
    found = list(_flat(options))
    different = [one for number, one in enumerate(found) if one not in found[:number]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _flat(options: Sequence[Json]) -> Iterator[Json]:
    for one in options:
        if one.keys() == {"anyOf"}:
            yield from one["anyOf"]
        else:
            yield one


if __name__ == "__main__":
    sys.stdout.write(text())
