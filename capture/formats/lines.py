"""The reading of frames in lines of text one at a time, as logs of Vector and PEAK need. Needs numpy."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from bus.text import decoded
from capture.formats.columns import Builder
from capture.formats.dates import date_ns
from capture.formats.source import Source, line_blocks
from capture.frames import Frames

_BYTE_LAST: Final = re.compile(rb"\s[0-9A-Fa-f]{2}$")
_BAD: Final = "lines that are no CAN frame"


class LineReader(ABC):
    """A reader of the lines of a file. It collects frames in `built`; `style` learns the step of times.

    `begin_ns` is what times of the file count from.
    """

    def __init__(self, source: Source, style: dict[str, Any]) -> None:
        self.built = Builder()
        self._source, self.style, self.begin_ns = source, style, 0
        style["step_ns"] = 1000

    def read(self) -> Iterator[Frames]:
        """Read all frames. Lines that are neither a frame nor a piece of a header are left out, and told."""
        for block in line_blocks(self._source, self.is_whole):
            for line in block.splitlines():  # of text, other characters would end a line too
                self._take(decoded(line))
            if len(self.built):
                yield self.built.take()

    def _take(self, line: str) -> None:
        try:
            is_known = self.knows(line)
        except (ValueError, KeyError, ArithmeticError):  # those of Decimal too
            is_known = False
        if not is_known:
            self._source.told.leave(_BAD, 1, line)

    def begin(self, date: str) -> bool:
        """Take a date that times count from; return True. One of an unknown form is told."""
        try:
            self.begin_ns = date_ns(date)
        except ValueError:
            self._source.told.note("dates of a form that is not read: times do not count from them", 1, date)
        return True

    def is_whole(self, line: bytes) -> bool:
        """Return whether a last line without an end is whole: it ends with a byte of two digits in hex.

        What is missing in front of that, a line's own length tells.
        """
        return bool(_BYTE_LAST.search(line))

    @abstractmethod
    def knows(self, line: str) -> bool:
        """Take a line. Return whether it is a frame or a piece of a header.

        ValueError, KeyError and ArithmeticError say that it is none.
        """
