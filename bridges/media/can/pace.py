"""The pace at which a CAN bus is read: each frame at once, or a stream at times that all buses share. Pure.

A wake-up of the loop costs several times as much as a frame. As NAPI does for network cards, a busy bus is
taken out of the poller and looked at by a timer, until a look finds too little. Times are in seconds.
"""

from typing import NamedTuple

BUSY_FRAMES, BUSY_S = 16, 0.008
"""The frames in a time that make a stream: at least half of a bus of 500 kbit/s."""
STREAM_RATE = 1_500
"""Frames a second that go on coming while they gather."""
REFILL_S = 0.0001
"""The least time in which the frames of a driver are let go down to half."""
ANSWER_S = 0.00025
"""The time after which an answer is looked for, in a stream; then twice that, and so on."""


class Driver(NamedTuple):
    """The state of a driver: whether messages wait for room in it, how many frames it may have at once, and
    whether it had none left, while messages waited, since the last look."""

    waits: bool = False
    most: int = 1
    ran_dry: bool = False


class Pace:
    """The pace of the looks at one bus. `gather_s`: the longest time between two; 0: read each frame at once.

    While messages wait for room in the driver, confirmations gather until it is half empty. Where others
    speak and we do, nothing begins to gather: that may be a dialogue. If we speak now and then beside a
    stream, looks follow at growing times: an answer waits about as long as it took, and no longer.
    """

    __slots__ = (
        "_answer_s",
        "_gather_s",
        "_half_s",
        "_lately",
        "_since_s",
        "_was_dry",
        "_was_talk",
        "is_gathering",
    )

    def __init__(self, gather_s: float) -> None:
        self._gather_s = gather_s
        self._half_s = gather_s  # in which half of what the driver may hold was sent, at the last rate
        self._since_s, self._lately = 0.0, 0
        self._answer_s = gather_s  # in which to look for an answer, if that is sooner
        self.is_gathering = self._was_dry = self._was_talk = False

    def look(self, now_s: float, frames: int, is_talk: bool, driver: Driver) -> float | None:
        """Note a look that found so many frames. Return when to look next, `now_s` for at once.

        None: as soon as a frame comes. `is_talk`: others spoke, and we did since they had before.
        """
        if not self._gather_s:
            return None
        if self.is_gathering:
            return self._look_on(now_s, frames, is_talk, driver)
        if is_talk or now_s - self._since_s > BUSY_S:
            self._since_s, self._lately = now_s, 0
        self._lately += frames
        if is_talk or self._lately < BUSY_FRAMES:
            return None
        self.is_gathering = True
        return self._next_s(now_s, self._lately, driver)

    def _look_on(self, now_s: float, frames: int, is_talk: bool, driver: Driver) -> float | None:
        """Go on gathering unless so many frames are no stream any more. Talk twice in a row is a dialogue."""
        is_dialogue, self._was_talk = is_talk and self._was_talk, is_talk
        was_dry = driver.ran_dry or self._was_dry
        if (is_dialogue or self._are_few(frames, now_s - self._since_s)) and not was_dry:
            self.is_gathering, self._was_talk, self._lately = False, False, 0
            return None
        self._answer_s = ANSWER_S if is_talk else min(2 * self._answer_s, self._gather_s)
        return min(self._next_s(now_s, frames, driver), now_s + self._answer_s)

    def _are_few(self, frames: int, passed_s: float) -> bool:
        """Tell whether so few frames came that they are no stream; a short time does not tell.

        A first look may come at once, as the times that all share have a phase of their own.
        """
        return passed_s >= self._gather_s / 2 and frames < STREAM_RATE * passed_s

    def _next_s(self, now_s: float, frames: int, driver: Driver) -> float:
        """Return a time that all buses share; or an earlier one, to refill the driver.

        A driver that has run dry is faster than we are: look again at once, and earlier from then on. The
        time since the last look would tell our own pace.
        """
        passed_s, self._since_s = now_s - self._since_s, now_s
        was_dry, self._was_dry = self._was_dry, driver.ran_dry
        if driver.ran_dry:
            self._half_s = max(REFILL_S, self._half_s / 2)
            return now_s
        if not was_dry:
            half_s = passed_s * driver.most / 2 / max(1, frames)
            self._half_s = min(self._gather_s, max(REFILL_S, half_s))
        if driver.waits:
            return self.refill_s(now_s)
        return (now_s // self._gather_s + 1) * self._gather_s

    def refill_s(self, now_s: float) -> float:
        """Return when a driver, for which messages wait now, is half empty."""
        return now_s + self._half_s
