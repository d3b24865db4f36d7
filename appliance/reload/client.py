"""Finds the gateways that run on this machine, and asks one to reload."""

from collections.abc import Collection, Iterator
from pathlib import Path

from appliance.local.asking import ask
from appliance.local.places import socket_name, sockets
from appliance.reload.outcome import ANSWER_BYTES, Outcome, Request, pack, unpack_outcome

RELOAD = "reload"


def reload_socket(only: Collection[str]) -> str:
    """Return the socket's name in the gateway's directory; each process has one."""
    return socket_name(RELOAD, only)


def reload_sockets(directory: Path | None, others: bool = True) -> Iterator[Path]:
    """Yield the sockets in one gateway's directory, or in those of `sockets`."""
    return sockets(RELOAD, directory, others)


def reload(path: Path, request: Request, limit_s: float) -> Outcome | None:
    """Ask a process to reload and wait for its outcome; None if nobody listens there.

    Raises `TimeoutError`, another `OSError`, or ValueError for an answer that is none.
    """
    line = ask(path, pack(request), limit_s, ANSWER_BYTES)
    return None if line is None else unpack_outcome(line)
