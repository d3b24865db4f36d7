"""Whether what is being passed on is sent again at a takeover, also by who held the lease, perhaps.

It holds for the call that passes it on, over all hubs of the process: a journal asks for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_replayed: ContextVar[bool] = ContextVar("is_replayed", default=False)


@contextmanager
def passing_replayed() -> Iterator[None]:
    """Say within the block that what is passed on is sent again."""
    token = _is_replayed.set(True)
    try:
        yield
    finally:
        _is_replayed.reset(token)


def is_replayed() -> bool:
    """Return whether what is being passed on is sent again."""
    return _is_replayed.get()
