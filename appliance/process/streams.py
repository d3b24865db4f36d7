"""The standard streams of a command. They are open, print any text, and are let go when no reader is left."""

import os
import sys
from typing import Literal, TextIO


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
