"""The standard streams of a command: open, able to print any text, and let go when nobody takes more."""

import os
import sys
from typing import Literal, TextIO


def prepare() -> None:
    """Open the standard streams that are closed on /dev/null, and let output print what its coding lacks.

    Else a socket would get the number of a closed stream, and what is printed would go to a peer.
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
    """Discard what standard output still holds: else the interpreter tries again and prints an error."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
