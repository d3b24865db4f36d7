"""Rounds of looks at what runs: one a few times a second, in as many turns of the loop as it takes."""

from asyncio import AbstractEventLoop, Handle
from collections.abc import Callable, Iterator


class Rounds:
    """Looks that follow each other, each `pause_s` after the end of the one before.

    `look(now_s)` looks once, and pauses where others are to have their turn; a look that raises ends alone.
    """

    def __init__(self, look: Callable[[float], Iterator[None]], pause_s: float) -> None:
        self._make, self._pause_s = look, pause_s
        self._loop: AbstractEventLoop | None = None
        self._timer: Handle | None = None
        self._now: Iterator[None] | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin the first look at once."""
        self._loop = loop
        self._begin()

    def _begin(self) -> None:
        assert self._loop is not None
        self._go_on(self._make(self._loop.time()))

    def _go_on(self, look: Iterator[None]) -> None:
        """Look as far as one turn of the loop allows."""
        assert self._loop is not None
        self._now = None
        try:
            if next(look, "end") is None:
                self._now = look
        finally:  # a defect in one look must not end them all, and leave the last verdict standing
            self._timer = (
                self._loop.call_later(self._pause_s, self._begin)
                if self._now is None
                else self._loop.call_soon(self._go_on, look)
            )

    def begin_anew(self) -> None:
        """Give up a look that has not ended, and begin another: what it looks at has changed."""
        if self._loop is not None and self._now is not None and self._timer is not None:
            self._timer.cancel()
            self._now, self._timer = None, self._loop.call_soon(self._begin)

    def close(self) -> None:
        """Look no more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
