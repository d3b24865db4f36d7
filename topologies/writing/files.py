"""The text of a new topology: one gateway, one bus, and a bridge to media. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from bridges.media.medium import Medium
from bus.schema import default_of, settings
from bus.text import plain

_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./+-]*")


class Joined(NamedTuple):
    """A medium that the bridge joins, the name of what its devices speak ("": TMQ), a comment, and the
    settings of the protocol."""

    medium: Medium
    protocol: str = ""
    remark: str = ""
    settings: Mapping[str, Any] = {}


class New(NamedTuple):
    """The contents of a new topology. `schema` is the path of the JSON Schema, `remarks` become comments."""

    name: str
    gateway: str
    address: str
    listen: str
    media: Sequence[Joined]
    schema: str
    remarks: Sequence[str] = ()


def written(new: New) -> str:
    """Return the text of the file."""
    return "\n".join([*_lines(new), ""])


def _lines(new: New) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={new.schema}"
    yield from (f"# {remark}" for remark in new.remarks)
    yield f"name: {_value(new.name)}"
    yield f"gateways:\n  {_value(new.gateway)}: {{address: {_value(new.address)}}}"
    yield f"buses:\n  plant: {{on: {_value(new.gateway)}, listen: [{_value(new.listen)}]}}"
    if new.media:
        yield f"bridges:\n  media:\n    on: {_value(new.gateway)}\n    join:\n      - bus: plant"
        for one in new.media:
            yield from _side(one)


def _side(one: Joined) -> Iterator[str]:
    if one.remark:
        yield f"      # {plain(one.remark)}"
    yield f"      - {one.medium.key}: {_mapping(one.medium)}"
    if one.protocol:
        yield f"        protocol: {_value({one.protocol: one.settings}) if one.settings else one.protocol}"


def said(record: Any) -> dict[str, Any]:
    """Return the settings of a record that are not the default, by their keys in a file."""
    return {
        key: getattr(record, one.field.name)
        for key, one in settings(type(record)).items()
        if one.required or getattr(record, one.field.name) != default_of(one)
    }


def _mapping(record: Any) -> str:
    return "{" + ", ".join(f"{key}: {_value(value)}" for key, value in said(record).items()) + "}"


def _value(value: Any) -> str:
    if is_dataclass(value):
        return _mapping(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)}: {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, str):
        return (
            value if _PLAIN.fullmatch(value) and _is_text(value) else json.dumps(value).replace("${", "$${")
        )
    return json.dumps(value)


def _is_text(value: str) -> bool:
    """Return whether YAML reads a value without quotes as text."""
    resolver: Any = Resolver()
    return str(resolver.resolve(ScalarNode, value, (True, False))) == "tag:yaml.org,2002:str"
