"""The identity of a journal: its id, and the trunk that it was made for. One file, `journal.json`."""

import json
import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from zlib import crc32

from bus.journal.errors import JournalError
from bus.journal.files import Files, has_name, read_all, replace
from bus.journal.ranges import U64_MAX
from bus.journal.segment import first_of

NAME: Final = "journal.json"
LOCK: Final = "lock"
VERSION: Final = 1
_BYTES_MAX: Final = 16 * 1024
_FORMAT: Final = "buscoupler journal"
Trunk = tuple[str, str, str]
"""System, gateway and bus that a journal is of."""


class Identity(NamedTuple):
    """A journal's id, the trunk that it was made for, and when (seconds since 1970)."""

    id: int
    made_for: Trunk
    made_s: int


def _pack(identity: Identity) -> bytes:
    fields: dict[str, Any] = {
        "format": _FORMAT,
        "version": VERSION,
        "id": f"{identity.id:016x}",
        "for": dict(zip(("system", "gateway", "bus"), identity.made_for, strict=True)),
        "made_s": identity.made_s,
    }
    return json.dumps(fields | {"crc": _check(fields)}, indent=1).encode() + b"\n"


def _check(fields: dict[str, Any]) -> str:
    return f"{crc32(json.dumps(fields, sort_keys=True).encode()):08x}"


def _parse(data: bytes) -> Identity:
    """Return what a file says. Raises ValueError, which says why it cannot be."""
    try:
        fields = json.loads(data)
        version, check = fields["version"], fields.pop("crc")
    except (ValueError, LookupError, TypeError, RecursionError, AttributeError):
        raise ValueError("it is damaged") from None
    if fields.get("format") == _FORMAT and type(version) is int and version > VERSION:
        raise ValueError(f"it has version {version}, and this program knows {VERSION}: install a newer one")
    if check != _check(fields):
        raise ValueError("it is damaged: its checksum is wrong")
    try:
        names = fields["for"]
        made_for = str(names["system"]), str(names["gateway"]), str(names["bus"])
        return Identity(int(fields["id"], 16) & U64_MAX, made_for, int(fields["made_s"]))
    except (ValueError, LookupError, TypeError):
        raise ValueError("it is damaged: fields are missing") from None


def read_identity(files: Files, directory: str) -> Identity | None:
    """Return whose journal a directory is; None for a new one. Raises `JournalError`, `OSError`."""
    data = read_all(files, os.path.join(directory, NAME), _BYTES_MAX)
    if data is None:
        return None
    try:
        return _parse(data)
    except ValueError as error:
        raise JournalError(
            f"{directory}/{NAME}: {error}. Without it no other end knows these messages: restore the file, "
            "or send what is left by `buscoupler journal send`"
        ) from None


def lock(files: Files, directory: str) -> int:
    """Lock a directory; return the descriptor. Raises `JournalError` if another process has it, `OSError`."""
    try:
        return files.lock(os.path.join(directory, LOCK))
    except BlockingIOError:
        raise JournalError(
            f"the journal {directory} is open in another process: stop it, or give another directory"
        ) from None


def claimed(files: Files, directory: str, made_for: Trunk, wall: Callable[[], float]) -> int:
    """Return the id of the journal in a directory; an empty one gets an identity, with the time of day that
    `wall` returns. Raises `JournalError`, `OSError`."""
    found = read_identity(files, directory)
    if found is None and any(map(first_of, files.listing(directory))):
        raise JournalError(
            f"{directory}: there are messages, but no {NAME} that says whose they are: restore it, or give "
            "another directory"
        )
    if found is None:
        found = Identity(int.from_bytes(os.urandom(8)) or 1, made_for, int(wall()))
        replace(files, os.path.join(directory, NAME), _pack(found))
    if found.made_for != made_for:
        raise JournalError(
            f"{directory}: this is the journal of {_words(found.made_for)}, not of {_words(made_for)}: "
            "give each trunk a directory of its own; if this one was renamed, send what is left by "
            "`buscoupler journal send`, and give another directory"
        )
    return found.id


def _words(trunk: Trunk) -> str:
    system, gateway, bus = trunk
    return f"bus {bus} of gateway {gateway} in system {system}"


def is_there(files: Files, directory: str, held: int) -> bool:
    """Return whether a directory still has the identity of a journal, and the lock that is `held`.

    Raises `OSError`."""
    return has_name(files, os.path.join(directory, NAME)) and files.is_at(held, os.path.join(directory, LOCK))
