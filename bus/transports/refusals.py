"""The connections that a listener refuses: each is told why, in its own protocol, before it is closed."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from contextlib import suppress
from typing import Final

Answer = Callable[[bytes, str], bytes]
"""A function that makes the answer to a refused peer: from the first bytes that it sent, and the reason.

b"" is no answer: a peer whose protocol has none. There are no first bytes of a peer that has greeted already.
"""

WAITING: Final = 16  # refused peers that have not said anything yet
_PATIENCE_S: Final = 0.5
_FIRST_BYTES: Final = 4096


def unanswered(first: bytes, why: str) -> bytes:
    """Return no answer, for protocols without one."""
    del first, why
    return b""


_CLIENT_HELLO: Final = b"\x16"  # the type of the record in which it comes
_DENIED: Final = bytes.fromhex("15 0303 0002 02 31")  # a record with a fatal alert: access_denied


def alerted(first: bytes, why: str) -> bytes:
    """Return the alert by which TLS refuses a peer that has begun a handshake. It has no room for words."""
    del why
    return _DENIED if first.startswith(_CLIENT_HELLO) else b""


def unavailable(first: bytes, why: str) -> bytes:
    """Return the answer to a refused client of HTTP, also one that asks for a WebSocket."""
    if not first.startswith((b"GET ", b"HEAD ")):
        return b""
    head = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    text = f"{why}\n"
    return f"{head}Content-Length: {len(text.encode())}\r\n\r\n{text}".encode()


class Refusals:
    """The refused connections that have not said yet which protocol they speak: a few, for a short time.

    They have descriptors that should be spare, so those beyond `WAITING` are closed at once.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._waiting: dict[socket.socket, TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def turn_away(self, loop: AbstractEventLoop, sock: socket.socket, why: str) -> None:
        """Answer what a peer has said or says soon, and close its connection. Never blocks, never raises."""
        if self._answer is unanswered or self._told(sock, why) or len(self._waiting) >= WAITING:
            return sock.close()
        self._waiting[sock] = loop.call_later(_PATIENCE_S, self._end, loop, sock)
        loop.add_reader(sock, self._on_first, loop, sock, why)
        return None

    def _told(self, sock: socket.socket, why: str) -> bool:
        """Answer the first bytes; read all of them, because a reset would overtake the answer."""
        try:
            first = sock.recv(_FIRST_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True
        answer = self._answer(first, why) if first else b""
        with suppress(OSError):
            sock.send(answer)
        return True

    def _on_first(self, loop: AbstractEventLoop, sock: socket.socket, why: str) -> None:
        if self._told(sock, why):
            self._end(loop, sock)

    def _end(self, loop: AbstractEventLoop, sock: socket.socket) -> None:
        timer = self._waiting.pop(sock, None)
        if timer is not None:
            timer.cancel()
            loop.remove_reader(sock)
            sock.close()

    def close(self, loop: AbstractEventLoop) -> None:
        """Close all that wait. Idempotent."""
        for sock in list(self._waiting):
            self._end(loop, sock)
