"""Asks a running process at its local socket: one line each way."""

import socket
from pathlib import Path


def ask(path: Path, line: bytes, limit_s: float, answer_bytes: int) -> bytes | None:
    """Send a line to a process and return the line that it answers; None if nobody listens there.

    Raises `TimeoutError`, or another `OSError`.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(limit_s)
        try:
            sock.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        sock.sendall(line)
        with sock.makefile("rb") as answer:
            found = answer.readline(answer_bytes)
    if not found:
        raise ConnectionError("it ended, or refused the request")
    return found
