"""The node as the board has it: with and without the C implementation of CRC-32, whole and made small."""

import sys
from types import ModuleType
from unittest.mock import patch

from bus.embedded.load import NODE
from bus.embedded.shrink import shrink

PARTS = ["uart", "rs485", "tcp", "i2c"]
SOURCE = NODE.read_text()


def small_node(parts: list[str] = PARTS) -> ModuleType:
    """What the loader sends, run here as a board without `binascii` runs it."""
    module = ModuleType("small_node")
    with patch.dict(sys.modules, {"binascii": None}):
        exec(shrink(SOURCE, parts), module.__dict__)
    return module


class Line:
    """A serial line as MicroPython shows it: `hears` is what is there to read, `said` what was written.

    At most `takes` bytes fit into one write, and `chunk` into one read.
    """

    def __init__(self, hears: bytes = b"", takes: int = 1 << 20, chunk: int = 64) -> None:
        self.hears, self.said, self.takes, self.chunk = hears, b"", takes, chunk

    def read(self, size: int) -> bytes | None:
        size = min(size, self.chunk)
        data, self.hears = self.hears[:size], self.hears[size:]
        return data or None

    def write(self, data: bytes | bytearray) -> int | None:
        self.said += data[: self.takes]
        return min(len(data), self.takes) or None
