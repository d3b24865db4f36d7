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
        raise ValueError("the line is JSON that is nested too deeply to be a record") from None
    if not isinstance(found, dict):
        raise ValueError(f"a line must be one JSON object, not {found!r:.40}")
    return found


def text(found: Record, name: str) -> str | None:
    """Return the text at a key of a record, None without it. Raises `ValueError` for anything else."""
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} must be text, not {value!r:.40}")
    return value


def number(found: Record, name: str) -> int | None:
    """Return the whole number at a key of a record, None without it.

    Raises `ValueError` for anything else.
    """
    value = found.get(name)
    if value is not None and type(value) is not int:
        raise ValueError(f"{name} must be a whole number, not {value!r:.40}")
    return value


def many(found: Record, name: str) -> list[Any]:
    """Return the list at a key of a record, empty without it. Raises `ValueError` for anything else."""
    value = found.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, not {value!r:.40}")
    return value


def texts(found: Record, name: str) -> tuple[str, ...]:
    """Return the items of a list at a key of a record, as text. Raises `ValueError` if it is no list."""
    return tuple(map(str, many(found, name)))


def records(found: Record, name: str) -> list[Record]:
    """Return the records in a list at a key of a record. Raises `ValueError` for anything else."""
    value = many(found, name)
    if not all(isinstance(one, dict) for one in value):
        raise ValueError(f"{name} must be a list of JSON objects, not {value!r:.40}")
    return value


def title(topology: str, gateway: str, only: Collection[str]) -> str:
    """Name a process for people: what it runs, and the parts of that if they are not all."""
    part = f" ({', '.join(only)})" if only else ""
    return f"{topology} on {gateway}{part}"
