"""The age of what is being passed on, where it waited in a journal while an end was away (docs/durable.md).

What must not come late asks for it.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Final

from bus.passing import passing

LATE_MS: Final = 2000
"""The time after which a message that waited is late."""
LATE: Final = "late"
"""The reason of a late message that is dropped."""
_age_ms: ContextVar[int] = ContextVar("age_ms", default=0)


def passing_late(age_ms: int) -> AbstractContextManager[None]:
    """Say within a block that what is passed on is `age_ms` old."""
    return passing(_age_ms, age_ms)


def late_ms() -> int:
    """Return the age of what is being passed on, in ms; 0 if it is not late."""
    return _age_ms.get()
