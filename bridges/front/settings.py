"""The settings of the front of a side. Pure."""

from typing import NamedTuple

from bus.key_types import Names
from bus.renaming import Renaming


class Limit(NamedTuple):
    """The most frames a second of a pattern, all of them together; of those that leave, if `outward`."""

    pattern: Names
    frames_per_s: float
    outward: bool = False


class Front(NamedTuple):
    """The settings of one side's front. A neutral front lets everything through as it is.

    `renaming` is that of `bus.renaming`. `refresh_s`: frames that enter with the data of the last
    one of their pattern are dropped, except one in each such time; None lets all pass. `limits` hold in their
    order. `opaque` is the pattern of messages that are no frames, None where these stay as they are.
    """

    renaming: Renaming = Renaming()
    refresh_s: float | None = None
    limits: tuple[Limit, ...] = ()
    opaque: Names | None = None

    def __bool__(self) -> bool:
        return self != NEUTRAL


NEUTRAL = Front()
