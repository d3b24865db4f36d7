"""Whether what is being passed on is sent again at a takeover, also by who held the lease, perhaps.

A journal asks for it.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar

from bus.passing import passing

_is_replayed: ContextVar[bool] = ContextVar("is_replayed", default=False)


def passing_replayed() -> AbstractContextManager[None]:
    """Say within a block that what is passed on is sent again."""
    return passing(_is_replayed, True)


def is_replayed() -> bool:
    """Return whether what is being passed on is sent again."""
    return _is_replayed.get()
