"""What goes wrong at a job's edge, in one line for the user."""

from bus.errors import BusError


class PipelineError(BusError):
    """A job that cannot run: a wrong path, an unreadable or later capture, no Java. One clear line."""
