"""Looks at busy buses that are due at one time, by one timer of the loop: it costs more than a look."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Final

from bus.machine.of_loop import OfLoop


class Look:
    """A look that is to come, at `due_s` of the loop's clock."""

    __slots__ = ("_call", "due_s")

    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        self.due_s, self._call = due_s, call

    def cancel(self) -> None:
        """Do not look. Idempotent."""
        self._call = _nothing

    def take(self) -> None:
        """Look now."""
        self._call()


def _nothing() -> None:
    pass


class Beats:
    """The looks to come of one loop, by the time at which they are due."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[float, list[Look]] = {}

    def look_at(self, due_s: float, call: Callable[[], None], is_first: bool) -> Look:
        """Call at `due_s`; `is_first`: before those of the same time that are not."""
        looks = self._due.get(due_s)
        if looks is None:
            looks = self._due[due_s] = []
            self._loop.call_at(due_s, self._look, due_s)
        look = Look(due_s, call)
        looks.insert(0 if is_first else len(looks), look)
        return look

    def _look(self, due_s: float) -> None:
        for look in self._due.pop(due_s):
            try:
                look.take()
            except Exception as error:
                self._loop.call_exception_handler({"message": "a look failed", "exception": error})


beats_of: Final = OfLoop(Beats)
"""A function that returns the looks of a loop, which all its buses share."""
