"""The connections that a listener refuses: each is told why, in its own protocol, before it is closed."""

import socket
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Final

Answer = Callable[[bytes, str], bytes]
"""A function that makes the answer to a refused peer: from the first bytes that it sent, and the reason.

b"" is no answer: a peer whose protocol has none. There are no first bytes of a peer that has greeted already.
"""

WAITING: Final = 16  # refused peers that have not said anything yet, or have not heard why
MOST_BYTES: Final = 1 << 18
"""The most that a refused peer may say: one that says more is closed, whether it has heard why or not."""
_PATIENCE_S: Final = 0.5
_FIRST_BYTES: Final = 4096
_READ_BYTES: Final = 1 << 16


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


class _Refused:
    """A refused connection. The peer is told why at its first word; what it says then is dropped."""

    def __init__(self, sock: socket.socket, why: str, answer: Answer) -> None:
        self.sock, self._why, self._answer = sock, why, answer
        self._said_bytes = 0

    def hear(self) -> bool:
        """Read what has come. Return whether the connection can be closed.

        The kernel resets one that is closed while something lies unread, and the reset would overtake the
        answer: so the peer ends first.
        """
        try:
            while data := self.sock.recv(_READ_BYTES):
                is_first, self._said_bytes = not self._said_bytes, self._said_bytes + len(data)
                if self._said_bytes > MOST_BYTES or (is_first and not self._tell(data[:_FIRST_BYTES])):
                    return True
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True
        return True

    def _tell(self, first: bytes) -> bool:
        """Answer. Return False if there is no answer to what the peer speaks."""
        answer = self._answer(first, self._why)
        if answer:
            self.sock.send(answer)
            self.sock.shutdown(socket.SHUT_WR)
        return bool(answer)


class Refusals:
    """The refused connections that have not said yet which protocol they speak, or have not ended since they
    were told: a few, for a short time.

    They have descriptors that should be spare, so those beyond `WAITING` are closed at once.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._waiting: dict[_Refused, TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def turn_away(self, loop: AbstractEventLoop, sock: socket.socket, why: str) -> None:
        """Answer what a peer has said or says soon, and close its connection. Never blocks, never raises."""
        refused = _Refused(sock, why, self._answer)
        if self._answer is unanswered or refused.hear() or len(self._waiting) >= WAITING:
            return sock.close()
        self._waiting[refused] = loop.call_later(_PATIENCE_S, self._end, loop, refused)
        loop.add_reader(sock, self._on_word, loop, refused)
        return None

    def _on_word(self, loop: AbstractEventLoop, refused: _Refused) -> None:
        if refused.hear():
            self._end(loop, refused)

    def _end(self, loop: AbstractEventLoop, refused: _Refused) -> None:
        timer = self._waiting.pop(refused, None)
        if timer is not None:
            timer.cancel()
            loop.remove_reader(refused.sock)
            refused.sock.close()

    def close(self, loop: AbstractEventLoop) -> None:
        """Close all that wait. Idempotent."""
        for refused in list(self._waiting):
            self._end(loop, refused)
