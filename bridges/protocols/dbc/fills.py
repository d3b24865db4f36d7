"""Functions that fill signals of messages that are sent: counters here, checksums by entry points. Pure.

An entry point of the group `buscoupler.fills` is a function `fill(data, identifier, count, bits)`. `data` are
those of the frame, in which the signal is 0 and counters and the signals named before it are filled;
`identifier` has the top bits of SocketCAN; `count` are the frames of the message that went before, and `bits`
those of the signal. It returns the raw number, of which the lowest bits are taken.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from bridges.protocols.dbc.layout import Message, Signal
from bus.kinds import Kinds

COUNTER: Final = "counter"
FILLS: Final[Kinds[Any]] = Kinds("buscoupler.fills", {COUNTER: "bridges.protocols.dbc.fills:count"})

_LIKELY: Final = re.compile(
    r"(?<![a-z])(counter|cntr|cnt|ctr|alive|rolling|rc|bz|crc\d*|checksum|chksum|chks|cksum|chk|cs)(?![a-z])"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def count(data: bytes, identifier: int, count: int, bits: int) -> int:
    """Return a counter: each frame has one more than the one before, and after the highest comes 0."""
    return count


def seems_filled(signal: Signal) -> bool:
    """Return whether the name of a signal is that of a counter or a checksum."""
    return bool(_LIKELY.search(_HUMP.sub("_", signal.name).lower()))


def chosen_for(message: Message, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a setting by SIGNAL or MESSAGE/SIGNAL has for the signals of a message, in its order."""
    names = {signal.name for signal in message.signals}
    found = dict[str, Any]()
    for key, value in named.items():
        if key in names:
            found.setdefault(key, value)
    for key, value in named.items():
        head, _, name = key.rpartition("/")
        if head == message.name and name in names:
            found[name] = value
    return found
