"""CAN frames as packets on sockets, in place of the kernel's CAN, through the gateway's code.

The kernel marks what comes back to its sender; here the highest bit of an unused byte does.
"""

import contextlib
import socket
from collections.abc import Callable
from typing import Any

from bridges.items import OWN
from bridges.media.can import own_socket, raw
from bridges.media.can.inbox import SO_TIMESTAMPNS
from bridges.media.can.many import Many
from bridges.packed import FD_BYTES

MARKED, MARK = 5, 0x80
_UNMARKED = bytes(byte & ~MARK for byte in range(256))
_SNDBUFFORCE = 32  # asm-generic/socket.h; not in `socket`


def roomy(sock: socket.socket, size_bytes: int = 1 << 24) -> socket.socket:
    """Enlarge the buffer of an end, and return it, non-blocking."""
    for option in (_SNDBUFFORCE, socket.SO_SNDBUF):  # the first takes root
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)
            break
    sock.setblocking(False)
    return sock


class _Inbox(Many):
    """An inbox over a socket whose kernel does not tell which frames are ours."""

    def _owns(self, count: int, own: int) -> list[int]:
        marks = self._marks(count)
        return marks if OWN in marks else []

    def _marks(self, count: int) -> list[int]:
        column = slice(MARKED, count * FD_BYTES, FD_BYTES)
        marked = self._data[column]
        self._data[column] = marked.translate(_UNMARKED)
        return [OWN if one & MARK else 0 for one in marked]


def install(bus: Callable[..., Any], put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Have the gateway of this process call `bus(channel=..., ...)` in place of opening SocketCAN."""
    put(raw, "bound", lambda channel, _filters: bus(channel=channel).socket)
    put(own_socket, "inbox_of", _Inbox)
    put(raw, "prepare", _prepare)


def _prepare(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
