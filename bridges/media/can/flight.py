"""The frames that a CAN driver has and that were not on the wire yet, as far as it told. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from bridges.items import CanFrame
from bridges.media.can.echo import is_same
from bridges.media.can.socketcan import pack_rows
from bridges.packed import STRIDE, Packed, frames_in


class Flight:
    """Frames in the driver, in order, each with the length of the message that ends with it; 0 for others."""

    __slots__ = ("_rows", "_sizes")

    def __init__(self) -> None:
        self._rows, self._sizes = bytearray(), list[int]()

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, frames: Sequence[CanFrame], sizes: Iterable[int]) -> None:
        """Note frames that the driver took, and the sizes of messages."""
        self._rows += pack_rows(frames)[0]
        self._sizes += sizes

    def confirm(self, frames: Sequence[CanFrame]) -> list[int] | None:
        """Note that frames were on the wire, and all before each: the driver sends them in order.

        Return the lengths of the messages that left so; None if no frame was one of these.
        """
        if isinstance(frames, Packed) and self._begins_with(frames):
            return self._take(len(frames))
        known, left = False, list[int]()
        for frame in frames:
            place = next((n for n, sent in enumerate(self._frames()) if is_same(sent, frame)), -1)
            known |= place >= 0  # else it is of a message that was already dropped
            left += self._take(place + 1)
        return left if known else None

    def _begins_with(self, frames: Packed) -> bool:
        """Tell whether these are the first, whatever lies in a row beside identifier, length and data."""
        if self._rows.startswith(frames.data):
            return True
        first = Packed(bytes(self._rows[: len(frames.data)]), frames.size)
        return first.keys == frames.keys

    def _take(self, count: int) -> list[int]:
        sizes = self._sizes[:count]
        del self._rows[: STRIDE * count], self._sizes[:count]
        return [size for size in sizes if size] if 0 in sizes else sizes

    def _frames(self) -> Iterator[CanFrame]:
        """Yield the frames with identifier and data; their marks are not known any more."""
        return frames_in(bytes(self._rows))

    def clear(self) -> tuple[list[CanFrame], list[int]]:
        """Forget all. Return the frames, and the lengths of the messages that end with them."""
        frames, sizes = list(self._frames()), [size for size in self._sizes if size]
        self._rows.clear()
        self._sizes.clear()
        return frames, sizes
