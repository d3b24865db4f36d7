"""Errors of jobs that a user can mend, each in one line."""

import re
from typing import Final

from bus.errors import BusError


class PipelineError(BusError):
    """A job that cannot run: a wrong path, an unreadable or later capture, no Java. One clear line."""


_OURS: Final = re.compile(r"(?:^|: )(?:pipeline|capture)\.[a-z.]+\.\w+Error: (.*)")
"""An error of ours as a worker in Python tells it, by way of an engine."""
_PYTHON: Final = re.compile(r"^(?:\w+\.)*\w+Error: .")
_TRACEBACK: Final = "Traceback (most recent call last):"
_GRPC: Final = re.compile(r'^details = "(.*)"$')
_PREFACE: Final = "An exception was thrown from the Python worker."  # before its stack


def cause_of(text: str) -> str:
    """Find our own error in an engine's words, else Python's if they begin with its stack, else the details
    of a connection, else the last cause that they name, else their first line; at most 300 characters."""
    lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith(_PREFACE)]
    if ours := [found[1] for found in map(_OURS.search, lines) if found]:
        return ours[-1][:300]
    if lines and lines[0].endswith(_TRACEBACK) and (raised := [*filter(_PYTHON.match, lines)]):
        return raised[-1][:300]
    if details := [found[1] for found in map(_GRPC.search, lines) if found]:
        return details[0][:300]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0] if lines else "no reason given")[:300]
