"""Judges of frames by their tokens, where patterns cannot say exactly what passes a side. Pure."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from bus.renaming import Renaming
from bus.wire.frame import unpack

_VERDICTS: Final = 8192  # remembered
Tokens = tuple[int, ...]


class Judge(Protocol):
    """A judge of what passes. Judges that are equal judge alike."""

    def enters(self, tokens: Tokens) -> bool:
        """Tell whether the frame of a pattern may come in."""

    def leaves(self, tokens: Tokens) -> bool:
        """Tell whether the frame of a pattern may be sent."""


class Renamed(NamedTuple):
    """A judge of patterns inside the bridge, by that of the patterns on the wire."""

    renaming: Renaming
    judge: Judge

    def enters(self, tokens: Tokens) -> bool:
        """Tell whether the frame may come in; True where its name on the wire is not known."""
        found = self._outside(tokens)
        return not self.renaming.lets_out or (found is not None and self.judge.enters(found))

    def leaves(self, tokens: Tokens) -> bool:
        """Tell whether the frame may be sent."""
        found = self._outside(tokens)
        return found is not None and self.judge.leaves(found)

    def _outside(self, tokens: Tokens) -> Tokens | None:
        turn = self.renaming.leaving(tokens)
        return None if turn is None else turn.of(tokens)


class Verdicts:
    """The verdicts of a judge on frames, remembered by their patterns."""

    def __init__(self, judge: Callable[[Tokens], bool]) -> None:
        self._judge = judge
        self._known: dict[Tokens, bool] = {}

    def admit(self, frame: bytes) -> bool:
        """Tell whether a frame passes."""
        tokens = unpack(frame).tokens
        verdict = self._known.get(tokens)
        if verdict is None:
            if len(self._known) >= _VERDICTS:
                self._known.clear()
            verdict = self._known[tokens] = self._judge(tokens)
        return verdict
