"""Packets that other brokers share before they are known: two that start together greet each other."""

from typing import Final

from bus.serving.connection import Connection

BYTES: Final = 64 * 1024
"""The bytes that are kept of one connection; a broker repeats what was refused."""
CONNECTIONS: Final = 16


class Early:
    """The packets of brokers that wait until the brokers are known to be peers, within bounds."""

    def __init__(self) -> None:
        self._frames: dict[Connection, list[bytes]] = {}
        self._bytes: dict[Connection, int] = {}
        self._before: list[Connection] = []

    def keep(self, connection: Connection, frame: bytes) -> bool:
        """Keep a packet. Return False if there is no room for it."""
        size = self._bytes.get(connection, 0) + len(frame)
        if size > BYTES or (connection not in self._frames and len(self._frames) >= CONNECTIONS):
            return False
        self._frames.setdefault(connection, []).append(frame)
        self._bytes[connection] = size
        return True

    def waiting(self) -> list[Connection]:
        """Return the connections of which something is kept."""
        return list(self._frames)

    def given_up(self) -> list[Connection]:
        """Return the connections that have waited since the last call. Call it once a heartbeat."""
        before, self._before = self._before, self.waiting()
        return [connection for connection in before if connection in self._frames]

    def take(self, connection: Connection) -> list[bytes]:
        """Return the packets of a connection in their order, and forget them."""
        self._bytes.pop(connection, None)
        return self._frames.pop(connection, [])
