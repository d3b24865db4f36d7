"""The standard streams of a command: they are open, print plain text, and are let go when no reader is left.

Within `plain()` all that a command prints, its errors included, has `?` in place of characters that would
move a cursor, change a terminal or turn text round: peers, files and names bring such text.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, Literal, TextIO, cast

from bus.text import hidden_in

_KEPT: Final = "\t"


class PlainStream:
    """A stream of text that prints only signs, blanks, tabs and ends of lines.

    Bytes for its `buffer`, and text for `under`, go out as they are. With `may_fail` nothing is raised if
    nobody takes the text.
    """

    def __init__(self, under: TextIO, may_fail: bool = False) -> None:
        self.under, self._passed_over = under, (OSError,) if may_fail else ()

    def write(self, text: str) -> int:
        with suppress(*self._passed_over):
            self.under.write(plainly(text))
        return len(text)

    def flush(self) -> None:
        with suppress(*self._passed_over):
            self.under.flush()

    def isatty(self) -> bool:
        return self.under.isatty()

    def fileno(self) -> int:
        return self.under.fileno()

    @property
    def encoding(self) -> str:
        return self.under.encoding

    @property
    def errors(self) -> str | None:
        return self.under.errors

    @property
    def buffer(self) -> BinaryIO:
        return self.under.buffer


def plainly(text: str) -> str:
    """Return text with `?` in place of each character that is neither a sign, a blank nor the end of a line.

    Half of a surrogate pair stands for a byte of a file name, which the stream escapes by itself.
    """
    if not hidden_in(text):
        return text
    return "\n".join(map(_plain_line, text.split("\n")))


def _plain_line(line: str) -> str:
    if not hidden_in(line):
        return line
    return "".join(
        one if one in _KEPT or "\ud800" <= one <= "\udfff" or not hidden_in(one) else "?" for one in line
    )


def _plain_stream(under: TextIO, may_fail: bool) -> TextIO:
    return under and cast(TextIO, PlainStream(under, may_fail))  # there may be no standard error


@contextmanager
def plain() -> Iterator[None]:
    """Print plainly within the block. A note that standard error does not take ends no command."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _plain_stream(sys.stdout, False), _plain_stream(sys.stderr, True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def terminal() -> TextIO:
    """Return standard output for text with commands for a terminal, all of which is the command's own."""
    return sys.stdout.under if isinstance(sys.stdout, PlainStream) else sys.stdout


def prepare() -> None:
    """Open closed standard streams on /dev/null, and escape characters that the coding of the output lacks.

    If a stream stayed closed, a socket would get its number, and printed text would go to a peer.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or _opened("r")
    sys.stdout = sys.stdout or _opened("w")
    if hasattr(sys.stdout, "reconfigure"):  # not where a test or a program put something else in its place
        sys.stdout.reconfigure(errors="backslashreplace")


def _opened(mode: Literal["r", "w"]) -> TextIO:
    return open(os.devnull, mode)


def let_go() -> None:
    """Discard text that standard output did not take: the interpreter would try again and print an error."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
