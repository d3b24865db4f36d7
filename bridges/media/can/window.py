"""The number of frames that a CAN driver may have at once. Pure: time is an argument, in seconds."""

LEAST = 10
"""Frames; those that a Linux interface takes by default."""
_RATE = 20_000  # frames a second, more than any bus carries


class Window:
    """A bound of what a driver has: `most` frames.

    Frames in a driver cannot be cancelled, so they are late after a bus has stood still. But each look at a
    driver costs as much as dozens of frames. So `most` is what the bus carried in `span_s` lately, at least
    `least`, and no more than the driver has once taken before it refused. With a span of 0, it stays `least`.
    """

    __slots__ = ("_ceiling", "_least", "_since_s", "_span_s", "most")

    def __init__(self, span_s: float, least: int = LEAST) -> None:
        self._span_s, self._least, self.most = span_s, least, least
        self._ceiling, self._since_s = max(least, round(_RATE * span_s)), 0.0

    def begin(self, now_s: float) -> None:
        """Note that the driver has its first frame, after it had none."""
        self._since_s = now_s

    def confirm(self, now_s: float, frames: int) -> None:
        """Note that so many frames were on the wire since this or `begin` was last called."""
        passed_s, self._since_s = now_s - self._since_s, now_s
        carried = frames * self._span_s / max(passed_s, 1 / _RATE)
        self.most = max(self._least, min(2 * self.most, round(carried), self._ceiling))

    def refuse(self, frames: int) -> None:
        """Note that the driver has so many frames and refuses another one."""
        self._ceiling = min(self._ceiling, max(self._least, frames))
        self.most = min(self.most, self._ceiling)
