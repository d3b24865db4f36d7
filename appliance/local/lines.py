"""The lines of JSON on local sockets: reads the record in a line, and the fields of a record. Pure."""

import json
from collections.abc import Collection
from typing import Any

Record = dict[str, Any]


def record(line: bytes) -> Record:
    """Return the record in a line. Raises ValueError if there is none."""
    try:
        found = json.loads(line.decode())
    except RecursionError:
        raise ValueError("the line is JSON that is nested too deeply to be a record") from None
    if not isinstance(found, dict):
        raise ValueError(f"{line[:40]!r} is no JSON object: does a process of another version answer?")
    return found


def text(found: Record, name: str) -> str | None:
    """Return the text called `name`, None if it is missing. Raises ValueError for another type."""
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} must be text, not {value!r:.40}")
    return value


def number(found: Record, name: str) -> int | None:
    """Return the integer called `name`, None if it is missing. Raises ValueError for another type."""
    value = found.get(name)
    if value is not None and type(value) is not int:
        raise ValueError(f"{name} must be a whole number, not {value!r:.40}")
    return value


def many(found: Record, name: str) -> list[Any]:
    """Return the list called `name`, empty if it is missing. Raises ValueError for another type."""
    value = found.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, not {value!r:.40}")
    return value


def texts(found: Record, name: str) -> tuple[str, ...]:
    """Return the items of the list called `name` as texts. Raises ValueError for another type."""
    return tuple(map(str, many(found, name)))


def records(found: Record, name: str) -> list[Record]:
    """Return the records in the list called `name`. Raises ValueError for another type, also of an item."""
    value = many(found, name)
    if not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{name} must be a list of JSON objects, not {value!r:.40}")
    return value


def title(topology: str, gateway: str, only: Collection[str]) -> str:
    """Return the title of a process: topology, gateway, and its parts if they are not all."""
    part = f" ({', '.join(only)})" if only else ""
    return f"{topology} on {gateway}{part}"
