from collections.abc import Callable
from typing import Any

from bus.embedded.buscoupler_node import Node, Pattern

OK: int
SILENT: int
VERSION: int

class Asking:
    complete: tuple[int, int] | None
    round_us: int | None
    def __init__(self, node: Node, nonce: int) -> None: ...
    def values(self, pattern: Pattern, callback: Callable[[tuple[int, ...], bytes, int], Any]) -> None: ...
    def time(self) -> None: ...
    def now(self) -> tuple[int, int]: ...

class Watch:
    state: int
    def __init__(self, node: Node, silence_ms: int) -> None: ...
    def poll(self) -> int: ...
