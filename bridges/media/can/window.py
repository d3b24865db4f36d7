"""The number of frames that a CAN driver may have at once. Pure: time is an argument, in seconds."""

LEAST = 10
"""Frames; those that a Linux interface takes by default."""
LARGEST = 80
_SPAN_S = 0.004  # of what the bus carries in it, the driver may have as much


class Window:
    """A bound of what a driver has: `most` frames.

    Frames in a driver cannot be cancelled, so they are late after a bus has stood still. But each look at a
    driver costs as much as dozens of frames. So `most` is what the bus carried in 4 ms lately, at least
    `least` and at most `largest`, and no more than the driver has once taken before it refused.
    """

    __slots__ = ("_ceiling", "_least", "_since_s", "most")

    def __init__(self, least: int = LEAST, largest: int = LARGEST) -> None:
        self._least, self._ceiling, self.most = least, largest, least
        self._since_s = 0.0

    def begin(self, now_s: float) -> None:
        """Note that the driver has its first frame, after it had none."""
        self._since_s = now_s

    def confirm(self, now_s: float, frames: int) -> None:
        """Note that so many frames were on the wire since this or `begin` was last called."""
        passed_s, self._since_s = now_s - self._since_s, now_s
        carried = frames * _SPAN_S / max(passed_s, _SPAN_S / LARGEST)
        self.most = max(self._least, min(2 * self.most, round(carried), self._ceiling))

    def refuse(self, frames: int) -> None:
        """Note that the driver has so many frames and refuses another one."""
        self._ceiling = min(self._ceiling, max(self._least, frames))
        self.most = min(self.most, self._ceiling)
