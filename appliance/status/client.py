"""The client of status sockets: asks running processes of this machine for their status.

An answer is bounded in time and size, because a process that hangs must not stop `top`.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from appliance.local.asking import answer_of, answers
from appliance.local.places import socket_name, sockets
from appliance.status.older import completed
from appliance.status.shape import VERSION, Status, fits

STATUS = "status"
ANSWER_S = 2.0
ANSWER_BYTES = 64 << 20


def status_socket(only: Collection[str]) -> str:
    """Return the name of a process's status socket in the gateway's directory."""
    return socket_name(STATUS, only)


def status_sockets(directory: Path | None) -> Iterator[Path]:
    """Yield the status sockets in one gateway's directory, or in all that the caller may look into."""
    return sockets(STATUS, directory)


def ask(path: Path, limit_s: float = ANSWER_S) -> Status:
    """Return the snapshot of the process that listens on `path`. Raises `OSError` or ValueError."""
    return read_status(str(path), answer_of(path, b"", limit_s, ANSWER_BYTES))


def ask_all(
    paths: Iterable[Path], limit_s: float = ANSWER_S
) -> Iterator[tuple[Path, Status | OSError | ValueError]]:
    """Ask processes at the same time, and yield the snapshot of each, or why it has none."""
    for path, found in answers(paths, b"", limit_s, ANSWER_BYTES):
        try:
            yield path, found if isinstance(found, OSError) else read_status(str(path), found)
        except ValueError as error:
            yield path, error


def read_status(where: str, body: bytes) -> Status:
    """Return the status in an answer from `where`. Raises ValueError for another version's, or for none."""
    if not body:
        raise ValueError(f"{where}: its process ended, or is too busy to answer")
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict) or status.get("version") != VERSION or not fits(status):
        raise ValueError(f"{where}: its answer is of another version: use the `top` of that version")
    return completed(status)
