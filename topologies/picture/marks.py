"""The live state of what a picture shows: a state, its sign, and words. Pure."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

State = Literal["ok", "ready", "wait", "bad", "idle"]
SIGNS: Mapping[State, str] = {"ok": "●", "ready": "◐", "wait": "◌", "bad": "▲", "idle": "○"}
"""A sign for each state, so that colour does not tell it alone."""


class Mark(NamedTuple):
    """The live state of a node or an edge: a state, its word, and up to two lines of text, such as rates.

    `fault` is why it is in this state, "" if it is well.

    `counts` are what was dropped or filtered, for which a picture has room in the title only. Of an edge, so
    are the `lines`: beside it stand the rates of both `ways`, that to its first node first.
    """

    state: State
    word: str = ""
    lines: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    fault: str = ""

    @property
    def text(self) -> str:
        """The whole mark in one line."""
        state = ": ".join(filter(None, (self.word, self.fault)))
        return " · ".join(filter(None, (state, *self.lines, *self.counts)))


PLANNED = Mark("idle")
