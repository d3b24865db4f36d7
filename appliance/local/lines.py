"""The lines of JSON that cross a local socket: a record each, and the fields in it. Pure."""

import json
from collections.abc import Collection
from typing import Any

Record = dict[str, Any]


def record(line: bytes) -> Record:
    """Return the record in a line. Raises ValueError for anything else."""
    try:
        found = json.loads(line.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not a record")
    return found


def text(found: Record, name: str) -> str | None:
    """Return a text of a record, None without one. Raises ValueError for anything else."""
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def number(found: Record, name: str) -> int | None:
    """Return a whole number of a record, None without one. Raises ValueError for anything else."""
    value = found.get(name)
    if value is not None and type(value) is not int:
        raise ValueError(f"{name} is no whole number")
    return value


def many(found: Record, name: str) -> list[Any]:
    """Return a list of a record, empty without one. Raises ValueError for anything else."""
    value = found.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")
    return value


def texts(found: Record, name: str) -> tuple[str, ...]:
    """Return what a list of a record has, as texts. Raises ValueError for anything that is no list."""
    return tuple(map(str, many(found, name)))


def records(found: Record, name: str) -> list[Record]:
    """Return the records that a list of a record has. Raises ValueError for anything else."""
    value = many(found, name)
    if not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{name} has something that is no record")
    return value


def title(topology: str, gateway: str, only: Collection[str]) -> str:
    """Name a process for people: what it runs, and the parts of that if they are not all."""
    part = f" ({', '.join(only)})" if only else ""
    return f"{topology} on {gateway}{part}"
