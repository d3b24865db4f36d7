"""Facts about what is passed on: they hold for the call that passes it on, over all hubs of the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def passing(known: ContextVar[T], value: T) -> Iterator[None]:
    """Say `value` of what is passed on within the block."""
    token = known.set(value)
    try:
        yield
    finally:
        known.reset(token)
