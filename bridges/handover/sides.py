"""The rules of a bridge's sides as its window sees them; sets of sides are bits by their numbers. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from bus.wire.envelope import Parts, is_enveloped

T = TypeVar("T")
Admits = Callable[[bytes], bool]
OfSide = tuple[int, bytes]
"""The number of a side, and a message there."""


class SideRules(NamedTuple):
    """The rules of a side for the window. `deaf`: a standby does not hear there what the active bridge sends.

    `opaque`: messages may come that are no frames. `inward` and `outward` judge those too, and frames by
    their type and tokens alone. `keeps_unsent()`: a message that did not get out by this side may be sent
    later. `replay_s`: at a takeover only what is younger is sent there, and nothing that is older than a
    frame of its pattern that came out; None for no such limit, 0 for nothing at all. `anew`: what comes in
    has a form that each gateway makes anew, so nobody can tell whether the active bridge has sent it: it is
    never sent at a takeover.
    """

    inward: Admits
    outward: Admits
    trunk: bool = False
    deaf: bool = False
    opaque: bool = False
    keeps_unsent: Callable[[], bool] = lambda: True
    replay_s: float | None = None
    anew: bool = False

    def is_malformed(self, message: bytes, parts: Parts) -> bool:
        """Tell whether a message is of no kind that may come here."""
        if parts.is_frame:
            return False
        return not self.opaque or (self.trunk and parts.envelope is None and is_enveloped(message))


class Sides:
    """All sides in order. `trunks`, `hearing` (a standby hears what comes out there) and `aged` (only young
    frames are replayed there) are bits."""

    __slots__ = ("_inward", "_outward", "aged", "hearing", "rules", "trunks")

    def __init__(self, rules: Sequence[SideRules]) -> None:
        self.rules = tuple(rules)
        self._inward = [(1 << n, side.inward) for n, side in enumerate(self.rules)]
        self._outward = [(1 << n, side.outward) for n, side in enumerate(self.rules)]
        self.trunks = sum(1 << n for n, side in enumerate(self.rules) if side.trunk)
        self.hearing = sum(1 << n for n, side in enumerate(self.rules) if not side.deaf)
        self.aged = sum(1 << n for n, side in enumerate(self.rules) if side.replay_s is not None)

    def inward(self, frame: bytes) -> int:
        """Return the sides where a frame may come in, as bits."""
        return _admitted(self._inward, frame)

    def outward(self, frame: bytes) -> int:
        """Return the sides where a frame may leave, as bits."""
        return _admitted(self._outward, frame)


def _admitted(sides: list[tuple[int, Admits]], frame: bytes) -> int:
    found = 0
    for bit, admits in sides:
        if admits(frame):
            found |= bit
    return found


def placed(side: int, places: Sequence[int | None]) -> int:
    """Return the new number of an old side; -1 of one that has gone."""
    place = places[side] if side >= 0 else None
    return -1 if place is None else place


def moved_all(by_side: Mapping[OfSide, T], places: Sequence[int | None]) -> dict[OfSide, T]:
    """Return what is known by side and message, by the new numbers of the sides that are left."""
    found = ((places[old], message, one) for (old, message), one in by_side.items())
    return {(place, message): one for place, message, one in found if place is not None}


def moved(bits: int, places: Sequence[int | None]) -> int:
    """Return bits of old sides as bits of their new numbers."""
    return sum(1 << new for old, new in enumerate(places) if new is not None and bits >> old & 1)
