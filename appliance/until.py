"""A deadline of a connection: who reads from it waits no longer, however little comes at a time."""

import socket
import threading
from contextlib import suppress
from typing import Self


class Until:
    """A deadline of a connection, which is closed then. `over` tells whether it was."""

    def __init__(self, sock: socket.socket, limit_s: float) -> None:
        self.over = False
        self._sock = sock.dup()  # one that TLS does not take over
        self._timer = threading.Timer(limit_s, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._sock.close()

    def _end(self) -> None:
        self.over = True
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
