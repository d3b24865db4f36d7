"""A tiny service on `bus.serving`: topics, in lines of text. It shows what a service has to write itself.

`hello` completes the handshake, `join TOPIC` subscribes, and `say TOPIC TEXT` sends `TEXT` to who joined.
"""

import asyncio
import logging
from itertools import takewhile
from typing import Any

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.serving.limits import Limits, Quota
from bus.serving.listener import Listener
from bus.serving.rejections import Rejections

log = logging.getLogger("lines")


class LineCutter:
    """Cuts a stream into lines. A zero byte is no text."""

    def __init__(self) -> None:
        self._rest = b""
        self.fault = ""

    @property
    def waiting(self) -> int:
        return len(self._rest)

    def cut(self, data: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        legal = list(takewhile(lambda line: 0 not in line, lines))
        self.fault = "a zero byte" if len(legal) < len(lines) else ""
        return legal


class LineService:
    """Listens at a free port of 127.0.0.1. `limits` are the fields of `Limits`."""

    def __init__(self, quota: Quota[Connection], silence_s: float = 0.0, **limits: Any) -> None:
        self.stats = Stats()
        self.quota, self._silence_s = quota, silence_s
        self._topics: dict[bytes, dict[Connection, None]] = {}
        self._reject = Rejections("lines", self.stats.rejected, log)
        self.listener = Listener(
            Limits(**limits),
            LineCutter,
            self._on_lines,
            self._on_gone,
            self._reject,
            self.stats,
            lambda: b"alive\n",
            "half a line",
        )
        self.address = self.listener.open(asyncio.get_running_loop(), ("127.0.0.1", 0))

    def _on_lines(self, connection: Connection, lines: list[bytes]) -> None:
        for line in lines:
            word, _, rest = line.partition(b" ")
            if word == b"hello":
                connection.met(self._silence_s)
            elif word == b"join":
                self._join(connection, rest)
            elif word == b"say":
                self._say(*rest.split(b" ", 1))
            else:
                self._reject("word", connection.host)

    def _join(self, connection: Connection, topic: bytes) -> None:
        joined = self._topics.get(topic, {})
        if connection in joined:
            return
        fault = self.quota.take(connection, connection.host, len(topic))
        if fault:
            return self._reject(fault, connection.host)
        self._topics.setdefault(topic, joined)[connection] = None

    def _say(self, topic: bytes, text: bytes = b"") -> None:
        for connection in self._topics.get(topic, ()):
            connection.send(text + b"\n")

    def _on_gone(self, connection: Connection) -> None:
        for topic in [topic for topic, joined in self._topics.items() if connection in joined]:
            self.quota.give_back(connection, connection.host, len(topic))
            del self._topics[topic][connection]
            if not self._topics[topic]:
                del self._topics[topic]
