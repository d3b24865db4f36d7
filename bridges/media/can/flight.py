"""The frames that a CAN driver has and that were not on the wire yet, as far as it told. Pure."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from bridges.items import CanFrame
from bridges.media.can.echo import is_same


class Flight:
    """Frames in the driver, in order, each with the length of the message that ends with it; 0 for others."""

    __slots__ = ("_frames", "_sizes")

    def __init__(self) -> None:
        self._frames, self._sizes = deque[CanFrame](), deque[int]()

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frames: Iterable[CanFrame], sizes: Iterable[int]) -> None:
        """Note frames that the driver took, and the sizes of messages."""
        self._frames += frames
        self._sizes += sizes

    def confirm(self, frames: Sequence[CanFrame]) -> list[int] | None:
        """Note that frames were on the wire, and all before each: the driver sends them in order.

        Return the lengths of the messages that left so; None if no frame was one of these.
        """
        first = islice(self._frames, len(frames))
        if [(number, data) for number, data, _ in first] == [(number, data) for number, data, _ in frames]:
            return self._take(len(frames))
        known, left = False, list[int]()
        for frame in frames:
            place = next((n for n, sent in enumerate(self._frames) if is_same(sent, frame)), -1)
            known |= place >= 0  # else it is of a message that was already dropped
            left += self._take(place + 1)
        return left if known else None

    def _take(self, count: int) -> list[int]:
        for _ in range(count):
            self._frames.popleft()
        return [size for size in (self._sizes.popleft() for _ in range(count)) if size]

    def clear(self) -> tuple[list[CanFrame], list[int]]:
        """Forget all. Return the frames, and the lengths of the messages that end with them."""
        frames, sizes = list(self._frames), [size for size in self._sizes if size]
        self._frames.clear()
        self._sizes.clear()
        return frames, sizes
