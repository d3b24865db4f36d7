"""The readings of devices: the last frame of each pattern that is a known quantity. Pure.

A frame is kept when it comes. It becomes a value when somebody asks for that.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from bus.quantity.known import Quantities
from bus.quantity.quantity import Quantity
from bus.values import Value, keyed
from bus.wire.frame import unpack

READINGS: Final = 256
"""The most patterns of one side of a bridge of which the last frame is kept."""
_OTHERS: Final = 4096  # patterns that are not kept and known as such


class Readings:
    """The last frame of each pattern of `quantities`, in the order in which the patterns came first.

    The first `most` patterns are kept, and what is kept stays: a metric does not come and go. `left_out`
    counts the patterns beyond them, up to 4,096.
    """

    __slots__ = ("_all", "_most", "_others", "_quantities", "left_out")

    def __init__(self, quantities: Iterable[Quantity], most: int = READINGS) -> None:
        self._most = most
        self._all = dict[bytes, Value]()
        self._others = set[bytes]()
        self.left_out = 0
        self.revise(quantities)

    def __len__(self) -> int:
        return len(self._all)

    def revise(self, quantities: Iterable[Quantity]) -> None:
        """Keep other quantities from now on, and forget what is none of them."""
        self._quantities = Quantities(quantities)
        self._others, self.left_out = set(), 0
        self._all = {key: value for key, value in self._all.items() if self._is_known(value.frame)}

    def take(self, messages: Iterable[bytes], now_s: float) -> None:
        """Remember the messages that are readings."""
        known = self._all
        for key, message in keyed(messages):
            if key in known or (key not in self._others and self._learn(key, message)):
                known[key] = Value(message, now_s)

    def _learn(self, key: bytes, message: bytes) -> bool:
        """Return whether the frames of a new pattern are kept."""
        is_known = self._is_known(message)
        if is_known and len(self._all) < self._most:
            return True
        if len(self._others) < _OTHERS:
            self._others.add(key)
            self.left_out += is_known
        return False

    def _is_known(self, frame: bytes) -> bool:
        return self._quantities.find(unpack(frame).tokens) is not None

    def read(self) -> Iterator[Value]:
        """Yield the last frames."""
        return iter(list(self._all.values()))
