"""Errors of jobs that a user can mend, each in one line."""

from bus.errors import BusError


class PipelineError(BusError):
    """A job that cannot run: a wrong path, an unreadable or later capture, no Java. One clear line."""


def cause_of(text: str) -> str:
    """Find the last cause that an engine's words name, else their first line; at most 300 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0] if lines else "no reason given")[:300]
