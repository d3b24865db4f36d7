"""Asks a running process at its local socket: at most one line each way."""

import socket
from pathlib import Path


def ask(path: Path, line: bytes, limit_s: float, answer_bytes: int) -> bytes | None:
    """Send a line to a process and return the line that it answers; None if nobody listens there.

    Raises `TimeoutError`, or another `OSError`.
    """
    try:
        found = answer_of(path, line, limit_s, answer_bytes)
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    if not found:
        raise ConnectionError(f"{path}: the process ended, or refused the request: see its log")
    return found


def answer_of(path: Path, line: bytes, limit_s: float, answer_bytes: int) -> bytes:
    """Send a line, or nothing if it is empty, and return the line that comes; b"" if none comes.

    `limit_s` bounds each step, because a process may hang. Raises `OSError`.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(limit_s)
        sock.connect(str(path))
        if line:  # a process that waits for none may have answered and closed already
            sock.sendall(line)
        with sock.makefile("rb") as answer:
            return answer.readline(answer_bytes)
