"""A WebSocket peer on a plain blocking socket, so that tests control every byte. Use it in a thread."""

import os
import socket

from bus.urls import split_url
from bus.wire.batch import from_payloads
from bus.wire.websocket.frames import BINARY, FIN, MASKED, apply_mask, encode, head
from bus.wire.websocket.upgrade import ClientUpgrade


def request(url: str, *headers: str) -> bytes:
    """Return the request that upgrades, with more headers."""
    first, _, rest = ClientUpgrade(url).begin().partition(b"\r\n")
    return b"\r\n".join([first, *(header.encode() for header in headers), rest])


class WebPeer:
    """A client of a WebSocket. `answer` is the first line of the answer to its request."""

    def __init__(self, url: str, *headers: str, buffer_bytes: int = 0) -> None:
        parts = split_url(url)
        self.socket = socket.socket()
        if buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.socket.settimeout(20)
        self.socket.connect((parts.host, parts.port))
        self.socket.sendall(request(url, *headers))
        self._data = b""
        while b"\r\n\r\n" not in self._data and (more := self.socket.recv(4096)):
            self._data += more
        answer, _, self._data = self._data.partition(b"\r\n\r\n")
        self.answer = answer.partition(b"\r\n")[0].decode()

    def send(self, *bodies: bytes) -> None:
        self.socket.sendall(encode(from_payloads(bodies), os.urandom))

    def say(self, payload: bytes, first: int = FIN | BINARY) -> None:
        """Send one frame of any kind."""
        key = os.urandom(4)
        self.socket.sendall(head(len(payload), first, MASKED) + key + apply_mask(payload, key))

    def frame(self) -> tuple[int, bytes]:
        """Read one frame: its first byte, and its payload."""
        first, size = self._exactly(2)
        if size >= 126:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
        return first, self._exactly(size)

    def receive(self) -> bytes:
        """Read a message of one frame."""
        first, body = self.frame()
        assert first == FIN | BINARY
        return body

    def rest(self) -> bytes:
        """Read to the end."""
        found = [self._data]
        try:
            while more := self.socket.recv(65536):
                found.append(more)
        except ConnectionResetError:
            pass
        return b"".join(found)

    def _exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self._data += more
        found, self._data = self._data[:size], self._data[size:]
        return found

    def close(self) -> None:
        self.socket.close()
