"""Finds the gateways that run on this machine, and asks one to reload."""

import socket
from collections.abc import Collection, Iterator
from pathlib import Path

from appliance.reload.outcome import ANSWER_BYTES, Outcome, Request, pack, unpack_outcome
from appliance.status.places import runtime_directories


def reload_socket(only: Collection[str]) -> str:
    """Return the socket's name in the gateway's directory; each process has one."""
    return "-".join(["reload", *sorted(only)]) + ".sock"


def sockets(directory: Path | None) -> Iterator[Path]:
    """Yield the sockets in one gateway's directory, or in all that the caller may look into."""
    if directory is not None:
        yield from sorted(directory.glob("reload*.sock"))
        return
    for root in runtime_directories():
        yield from sorted(root.glob("*/*/reload*.sock"))


def ask(path: Path, request: Request, limit_s: float) -> Outcome | None:
    """Ask a process to reload and wait for its outcome; None if nobody listens there.

    Raises `TimeoutError`, another `OSError`, or ValueError for an answer that is none.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(limit_s)
        try:
            sock.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        sock.sendall(pack(request))
        with sock.makefile("rb") as answer:
            line = answer.readline(ANSWER_BYTES)
    if not line:
        raise ConnectionError("it ended, or refused the request")
    return unpack_outcome(line)
