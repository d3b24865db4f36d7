"""Asks running processes at their local sockets: at most one line each way, all of them by one deadline."""

import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

READ_BYTES: Final = 1 << 16
AT_ONCE: Final = 128
"""The processes that are asked at the same time, each with a descriptor."""

Answered = tuple[Path, bytes | OSError]
"""A process by its socket, and its line (b"" if none came) or why there is none."""


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

    `limit_s` bounds the whole, however slowly bytes come. Raises `OSError`.
    """
    ((_, found),) = answers([path], line, limit_s, answer_bytes)
    if isinstance(found, OSError):
        raise found
    return found


def answers(paths: Iterable[Path], line: bytes, limit_s: float, answer_bytes: int) -> Iterator[Answered]:
    """Ask processes at the same time as `answer_of` does, and yield what each answers, in their order.

    `limit_s` bounds the whole for each `AT_ONCE` processes, and `answer_bytes` the answers of one runtime
    directory together, so that no user has more of the caller's time and memory than any other.
    """
    waiting = list(paths)
    for start in range(0, len(waiting), AT_ONCE):
        yield from _Round(waiting[start : start + AT_ONCE], line, limit_s, answer_bytes).answers()


class _Round:
    """The questions to some processes, and their answers until one deadline."""

    def __init__(self, paths: list[Path], line: bytes, limit_s: float, answer_bytes: int) -> None:
        self._line, self._end_s = line, time.monotonic() + limit_s
        self._heard = {path: bytearray() for path in paths}
        self._room = {owner_of(path): answer_bytes for path in paths}
        self._faults = dict[Path, OSError]()

    def answers(self) -> Iterator[Answered]:
        with selectors.DefaultSelector() as selector:
            try:
                for path in self._heard:
                    self._open(path, selector)
                self._listen(selector)
            finally:
                for key in list(selector.get_map().values()):
                    self._faults[key.data] = TimeoutError("timed out")
                    _close(key, selector)
        for path, heard in self._heard.items():
            yield path, self._faults.get(path) or bytes(heard)

    def _open(self, path: Path, selector: selectors.BaseSelector) -> None:
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        try:
            sock.connect(str(path))
            with suppress(BrokenPipeError):  # one that waits for no line may have answered already
                sock.sendall(self._line)
        except BlockingIOError:  # its queue of connections is full, as of one that hangs
            self._faults[path] = TimeoutError("timed out")
        except OSError as error:
            self._faults[path] = error
        if path in self._faults:
            sock.close()
        else:
            selector.register(sock, selectors.EVENT_READ, path)

    def _listen(self, selector: selectors.BaseSelector) -> None:
        left_s = 1.0
        while selector.get_map() and left_s > 0:
            left_s = self._end_s - time.monotonic()
            # What has come by then counts, however late we look.
            for key, _ in selector.select(max(0.0, left_s)):
                if self._is_over(key):
                    _close(key, selector)

    def _is_over(self, key: selectors.SelectorKey) -> bool:
        """Read once. Return whether that was the end of the answer."""
        path, sock = key.data, key.fileobj
        owner = owner_of(path)
        assert isinstance(sock, socket.socket)
        try:
            data = sock.recv(min(READ_BYTES, self._room[owner]))
        except OSError as error:
            self._faults[path] = error
            return True
        self._heard[path] += data
        self._room[owner] -= len(data)
        return not data or b"\n" in data or not self._room[owner]


def owner_of(path: Path) -> Path:
    """Return the runtime directory that a socket's path begins with, which belongs to one user."""
    return path.parents[min(2, len(path.parents) - 1)]


def _close(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    selector.unregister(key.fileobj)
    if isinstance(key.fileobj, socket.socket):
        key.fileobj.close()
