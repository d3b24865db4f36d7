"""The errors of journals: each text says what happened, to which journal, why, and what to do. Pure."""

from bus.errors import BusError


class JournalError(BusError, OSError):
    """A journal that cannot be opened or read."""


class JournalGone(JournalError):
    """A journal whose files were deleted or moved away while it was open."""


class JournalFull(JournalError):
    """Messages that the journal does not take, because it is full and keeps what it has."""


class RecordError(BusError, ValueError):
    """Bytes that are no record."""
