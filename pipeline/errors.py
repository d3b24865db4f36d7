"""Errors of jobs that a user can mend, each in one line."""

from bus.errors import BusError


class PipelineError(BusError):
    """A job that cannot run: a wrong path, an unreadable or later capture, no Java. One clear line."""
