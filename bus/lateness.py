"""The age of what is being passed on, where it waited in a journal while an end was away (docs/durable.md).

It holds for the call that passes it on, over all hubs of the process: what must not come late asks for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

LATE_MS: Final = 2000
"""What waited for longer is late."""
LATE: Final = "late"
"""The reason of a late message that is dropped."""
_age_ms: ContextVar[int] = ContextVar("age_ms", default=0)


@contextmanager
def passing_late(age_ms: int) -> Iterator[None]:
    """Say within the block that what is passed on is `age_ms` old."""
    token = _age_ms.set(age_ms)
    try:
        yield
    finally:
        _age_ms.reset(token)


def late_ms() -> int:
    """Return the age of what is being passed on, in ms; 0 if it is not late."""
    return _age_ms.get()
