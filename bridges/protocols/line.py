"""The wire to a device that is asked, between request and answer, and the outcome of a request. Pure."""

from typing import NamedTuple, Protocol, TypeVar

I = TypeVar("I", contravariant=True)  # noqa: E741 (an item)


class Outcome(NamedTuple):
    """The outcome of a request: the data that were read, or `fault`, a reason of rejects.

    `refused`: the device itself refused, in these words, with this `code`. `unsure`: nobody knows whether a
    write was done. `instead`: what came in place of the answer, for people.
    """

    data: bytes = b""
    fault: str = ""
    refused: str = ""
    unsure: bool = False
    code: int = 0
    instead: str = ""

    def words(self) -> str:
        """Return what became of a command."""
        if self.fault:
            return f"not known: {self.fault}"
        if self.refused:
            return f"{'not known' if self.unsure else 'refused'}: {self.refused}"
        return "done"


class Line(Protocol[I]):
    """The wire between request and answer: one request is open at a time.

    `is_open`: whether one is. `free_s`: when the next may be sent. `due_s`: when to `look`, while one is
    open. `heard_s`: when the last input came.
    """

    is_open: bool
    free_s: float
    heard_s: float

    @property
    def due_s(self) -> float: ...

    def feed(self, item: I, now_s: float) -> Outcome | None:
        """Take input. Return the outcome of the open request if this completes it."""

    def look(self, now_s: float) -> Outcome | None:
        """Return the outcome of the open request if it has one by the passing of time."""
