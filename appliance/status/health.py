"""The verdict on a gateway: `ok`, `degraded` or `trouble`, with its reasons. Pure."""

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

Word = Literal["ok", "degraded", "trouble"]
WORDS: Final[tuple[Word, ...]] = ("ok", "degraded", "trouble")
"""`trouble`: something does not work now. `degraded`: it works, but messages were lost lately, or the next
fault would not be made up for."""

REASONS: Final = 32
"""The most reasons that a verdict lists; `more` counts the others."""


class Concern(NamedTuple):
    """One thing that is wrong: how bad it is, where, and what it is."""

    word: Word
    source: str
    text: str

    def __str__(self) -> str:
        return f"{self.source}: {self.text}"


class Health(NamedTuple):
    """A verdict with its first `REASONS` reasons, the worst first, and the count of those left out."""

    word: Word = "ok"
    reasons: tuple[Concern, ...] = ()
    more: int = 0

    def line(self) -> str:
        """Return the verdict in a line: the first reason, and how many there are beside it."""
        if not self.reasons:
            return self.word
        others = len(self.reasons) - 1 + self.more
        return f"{self.word}: {self.reasons[0]}" + (f" (and {others} more)" if others else "")

    def as_record(self) -> dict[str, Any]:
        """Return the verdict as a status document has it."""
        reasons = [reason._asdict() for reason in self.reasons]
        return {"word": self.word, "line": self.line(), "more": self.more, "reasons": reasons}


def verdict(concerns: Iterable[Concern]) -> Health:
    """Return the health that concerns make. Equally bad ones keep their order."""
    found = sorted(concerns, key=lambda one: -WORDS.index(one.word))
    if not found:
        return Health()
    return Health(found[0].word, tuple(found[:REASONS]), max(0, len(found) - REASONS))
