from collections.abc import Callable, Sequence
from typing import Any

from bus.embedded.buscoupler_node import Node, Pattern

MESSAGE: int
ADD: int
FORGET: int
SUBSCRIBE: int
PUBLISH: int
DEAD: int

def packed(host: str, port: int) -> bytes: ...

class Caller:
    sock: Any
    data: bytes
    def __init__(self, sock: Any, data: bytes = b"") -> None: ...

class Tmq:
    own: bytes
    patterns: dict[bytes, bool]
    subscribers: list[tuple[bytes, bytes]]
    down: dict[bytes, list[Any]]
    gone: bytes
    left_s: int
    pause_s: int
    turns: list[int]
    broker: tuple[str, int] | None
    fault: str
    polls: int
    rejected: int
    oversize: int
    unsent: int
    sent: int
    unheard: int
    dropped: int
    full: int
    refused: int
    listener: Any
    port: int
    second_ms: int
    queue: list[tuple[bytes, bytearray]]
    calls: list[Any]
    callers: list[Any]
    inbox: list[bytes]
    def __init__(
        self,
        brokers: Sequence[str],
        host: str = "0.0.0.0",
        port: int = 9943,
        limit: int = 512,
        queue: int = 8,
        patterns: int = 16,
        subscribers: int = 16,
        sockets: int = 3,
        timeout_s: float = 2,
        refresh_s: int = 10,
    ) -> None: ...
    def register(self, type: int, head: bytes) -> None: ...
    def send(self, message: bytes) -> bool: ...
    def poll(self) -> bytes | None: ...
    def step(self) -> None: ...
    def close(self) -> None: ...

class TmqNode(Node):
    link: Tmq
    def __init__(self, link: Tmq) -> None: ...
    def publish(self, pattern: Pattern, data: bytes | str = b"", type: int = ...) -> bool: ...
    def subscribe(self, pattern: Pattern, callback: Callable[[tuple[int, ...], bytes], Any]) -> None: ...
    def declare(self, pattern: Pattern) -> None: ...
