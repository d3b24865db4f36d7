"""Sockets that dial from the port that they dial, as by chance: each is connected to itself."""

import socket
from collections.abc import Callable
from typing import Any

import pytest


def dial_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each socket dial from the port that it dials, also one that was to be bound to any port before."""
    bind = socket.socket.bind
    for name in ("connect", "connect_ex"):
        whole = getattr(socket.socket, name)

        def dial(sock: socket.socket, place: Any, whole: Callable[..., Any] = whole) -> Any:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bind(sock, place)
            return whole(sock, place)

        monkeypatch.setattr(socket.socket, name, dial)

    def bind_later(sock: socket.socket, place: Any) -> None:
        if place != ("", 0):
            bind(sock, place)

    monkeypatch.setattr(socket.socket, "bind", bind_later)


def may_listen(port: int) -> bool:
    """Return whether who belongs to a port can have it."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
