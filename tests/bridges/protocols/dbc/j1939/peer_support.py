"""Nodes of can-j1939 on a bus in memory, with a clock of their own: they say what a listener hears."""

from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from j1939 import j1939_21

Heard = tuple[int, bytes, float]
"""An identifier without top bits, data, and a time in seconds."""


class Bus:
    """A bus on which nodes of can-j1939 talk. `heard` is what a listener hears, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, addresses: tuple[int, ...]) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(j1939_21, "time", SimpleNamespace(time=lambda: self.now_s))
        self.heard, self._left, self.got = list[Heard](), deque[tuple[int, list[int]]](), list[bytes]()
        self.nodes = {address: self._node(address) for address in addresses}

    def _node(self, address: int) -> Any:
        def send(identifier: int, extended: bool, data: list[int], *_: object) -> None:
            self._left.append((identifier, list(data)))

        def got(priority: int, pgn: int, source: int, to: int, at: float, data: list[int]) -> None:
            if len(data) > 8:
                self.got.append(bytes(data))

        return j1939_21.J1939_21(send, lambda: None, got, 5, None, None, lambda to: to == address)

    def say(self, source: int, pgn: int, data: bytes, destination: int = 255) -> None:
        """Begin to send a message."""
        args = (pgn >> 16 & 1, pgn >> 8 & 0xFF, pgn & 0xFF if pgn >> 8 & 0xFF >= 240 else destination)
        assert self.nodes[source].send_pgn(*args, 6, source, list(data), 0, None)

    def run(self, seconds: float, step_s: float = 0.01) -> None:
        """Let the nodes talk for a time."""
        for _ in range(round(seconds / step_s)):
            for node in self.nodes.values():
                node.async_job_thread(self.now_s)
            for identifier, data in self._taken():
                self.heard.append((identifier, bytes(data), self.now_s))
                for address, node in self.nodes.items():
                    if identifier & 0xFF != address:
                        node.notify(identifier, list(data), self.now_s)
            self.now_s += step_s

    def _taken(self) -> Iterator[tuple[int, list[int]]]:
        while self._left:
            yield self._left.popleft()
