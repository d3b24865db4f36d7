"""A catalog with a time of its own, and what its peers hear."""

import json
from typing import Any

from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.outcomes import Ask, Outcome
from devices.dbp.catalog.registry import Registry
from devices.dbp.catalog.wire import Command, parse
from tests.devices.dbp.catalog import original

HOST, ELSEWHERE = "10.9.0.1", "10.9.0.2"
DISCONNECT = Command(wire.DISCONNECT)
SILENT = Outcome(refused="silenced")


class Room:
    """A catalog with a time of its own, and peers that speak to it in frames."""

    def __init__(self, strict: bool = False, **bounds: Any) -> None:
        self.bounds = Bounds(**bounds)
        self.registry = Registry(self.bounds, strict)
        self.now_s = 1000.0
        self._peers = 0

    def say(self, peer: bytes, word: bytes, *body: bytes | dict[str, Any], host: str = HOST) -> Outcome:
        frames = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in body]
        return self.hear(peer, [b"", word, original.TIME, *frames], host)

    def hear(self, peer: bytes, frames: list[bytes], host: str = HOST) -> Outcome:
        return self.registry.take(peer, host, parse(frames, self.bounds), self.now_s)

    def req(self, word: bytes, *body: bytes | dict[str, Any], host: str = HOST) -> Outcome:
        """Say it over a new connection, as the original does."""
        self._peers += 1
        return self.say(b"req %d" % self._peers, word, *body, host=host)

    def register(
        self, name: str, port: int = 5247, peer: bytes = b"", host: str = HOST, **more: Any
    ) -> Outcome:
        fields = {"name": name, "interfaces": {"router": {"ip": "127.0.0.1", "port": port}}, **more}
        return (
            self.say(peer, wire.REGISTRATION, fields, host=host)
            if peer
            else self.req(b"UwU", fields, host=host)
        )

    def listed(self) -> dict[str, Any]:
        return answer(self.req(wire.INFO_REQUEST, b""))

    def wait(self, seconds: float) -> list[Ask]:
        """Let time go by in steps. Return who was asked."""
        asks: list[Ask] = []
        for _ in range(round(seconds * 4)):
            self.now_s += 0.25
            asks += self.registry.tick(self.now_s).asks
        return asks


def answer(outcome: Outcome) -> dict[str, Any]:
    assert outcome.reply is not None
    assert outcome.reply.word == wire.INFO_REPLY
    found: dict[str, Any] = json.loads(outcome.reply.body[0])
    return found


def word(outcome: Outcome) -> bytes:
    assert outcome.reply is not None
    return outcome.reply.word


def denied(outcome: Outcome) -> str:
    """The first reason."""
    assert word(outcome) == wire.DENIED
    assert not outcome.kept
    assert outcome.reply is not None
    assert outcome.reply.body[0].decode().startswith(outcome.refused)
    return outcome.refused
