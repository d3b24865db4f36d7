"""The node as on the board: whole and shrunk, with and without the C implementation of CRC-32."""

import os
import re
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from unittest.mock import patch

from bus.embedded.load import source
from bus.embedded.shrink import shrink
from tests.helpers import ROOT

PARTS = ["uart", "rs485", "tcp", "i2c", "tmq", "asking"]
SOURCE = source()
MICROPYTHON = shutil.which(
    "micropython", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
)
"""A real MicroPython: of the environment that runs the tests, or in the path."""


def blocks(language: str) -> list[str]:
    """Return the code blocks in a language on the page of the node."""
    page = (ROOT / "docs" / "microcontroller.md").read_text()
    return [dedent(text) for text in re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)]


def small_node(parts: list[str] = PARTS) -> ModuleType:
    """Return the node that the loader sends, as a board without `binascii` runs it."""
    module = ModuleType("small_node")
    with patch.dict(sys.modules, {"binascii": None}):
        exec(shrink(SOURCE, parts), module.__dict__)
    return module


class Line:
    """A serial line with MicroPython's methods: `hears` is the data to read, `said` the data written.

    A write accepts at most `takes` bytes, and a read returns at most `chunk`.
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
