"""The frames that a CAN driver has and that were not on the wire yet, as far as it told. Pure."""

from collections.abc import Iterable, Sequence

from bridges.items import CanFrame
from bridges.media.can.echo import is_same
from bridges.media.can.socketcan import keys_of
from bridges.packed import Part, frame_of


class Flight:
    """Frames in the driver, in order, each with the length of the message that ends with it; 0 for others."""

    __slots__ = ("_keys", "_sizes")

    def __init__(self) -> None:
        self._keys, self._sizes = list[Part](), list[int]()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, frames: Sequence[CanFrame], sizes: Iterable[int]) -> None:
        """Note frames that the driver took, and the sizes of messages."""
        self._keys += keys_of(frames)
        self._sizes += sizes

    def confirm(self, frames: Sequence[CanFrame]) -> list[int] | None:
        """Note that frames were on the wire, and all before each: the driver sends them in order.

        Return the lengths of the messages that left so; None if no frame was one of these.
        """
        keys = keys_of(frames)
        if self._keys[: len(keys)] == keys:
            return self._take(len(keys))
        known, left = False, list[int]()
        for frame in frames:
            place = next((n for n, key in enumerate(self._keys) if is_same(frame_of(key), frame)), -1)
            known |= place >= 0  # else it is of a message that was already dropped
            left += self._take(place + 1)
        return left if known else None

    def _take(self, count: int) -> list[int]:
        sizes = self._sizes[:count]
        del self._keys[:count], self._sizes[:count]
        return [size for size in sizes if size] if 0 in sizes else sizes

    def clear(self) -> tuple[list[CanFrame], list[int]]:
        """Forget all. Return the frames, and the lengths of the messages that end with them."""
        frames, sizes = list(map(frame_of, self._keys)), [size for size in self._sizes if size]
        self._keys.clear()
        self._sizes.clear()
        return frames, sizes
