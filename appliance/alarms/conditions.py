"""The conditions of alarms: whether values, or their absence, violate what a topology states. Pure."""

from collections import deque
from typing import Final, NamedTuple

from topologies.model.alarms import AlarmSpec

SLOTS: Final = 16
"""The parts of `within_s` for each of which the least and the greatest value are kept."""


class Judgement(NamedTuple):
    """A judgement: whether the alarm is due, None if nothing is known yet, and the cause in words."""

    due: bool | None
    cause: str = ""


class Spread:
    """The least and the greatest value of the last `within_s`, in `SLOTS` steps of time."""

    def __init__(self, within_s: float) -> None:
        self._step_s = within_s / SLOTS
        self._slots: deque[tuple[int, float, float]] = deque(maxlen=SLOTS + 1)

    def hear(self, value: float, now_s: float) -> None:
        """Take a value."""
        slot = int(now_s / self._step_s)
        low = high = value
        if self._slots and self._slots[-1][0] == slot:
            _, before_low, before_high = self._slots.pop()
            low, high = min(low, before_low), max(high, before_high)
        self._slots.append((slot, low, high))

    def of(self, now_s: float) -> float | None:
        """Return the difference between the greatest and the least value; None without values."""
        while self._slots and self._slots[0][0] < int(now_s / self._step_s) - SLOTS:
            self._slots.popleft()
        if not self._slots:
            return None
        return max(slot[2] for slot in self._slots) - min(slot[1] for slot in self._slots)


class Judge:
    """The judge of one subject of an alarm: of one pattern, or of one link.

    `due` is what was last judged, None before; with its `cause` it may come from before a restart. `start_s`
    is when the subject is watched from. Times are in s, monotonic.
    """

    def __init__(self, spec: AlarmSpec, start_s: float, due: bool | None = None, cause: str = "") -> None:
        self.due, self.heard = due, False
        self.value: float | None = None
        self._spec, self._last_s = spec, start_s
        self._spread = None if spec.changed_by is None else Spread(spec.within_s)
        self._turns_s: float | None = None  # since when it is otherwise than `due`
        self._rose = False
        self._cause = cause
        self._said: dict[str, str] = {}  # of each limit, how the value was last beyond it

    def hear(self, value: float | None, now_s: float) -> None:
        """Take a frame with its value, None for one that is no number."""
        self._last_s, self.heard = now_s, True
        if value is not None:
            self.value = value
            if self._spread is not None:
                self._spread.hear(value, now_s)
        self._step(now_s)

    def link(self, is_up: bool, value: float | None, now_s: float) -> None:
        """Take the state of a link, and the value of it that the alarm is about."""
        if is_up or self._spec.missing_s is None:
            self.hear(value, now_s)

    def look(self, now_s: float) -> Judgement:
        """Return the judgement of now. An alarm that was due between two looks is due at the second."""
        self._step(now_s)
        if self._rose:
            self._rose = False
            return Judgement(True, self._cause)
        return Judgement(self.due, self._cause)

    def _step(self, now_s: float) -> None:
        """Go on to another judgement if the conditions have called for it for long enough."""
        causes, unknown = self._violations(now_s)
        wanted = True if causes else None if unknown else False
        if wanted is None or wanted == self.due:
            self._turns_s = None
            if causes:
                self._cause = "; ".join(causes)
            return
        if self._turns_s is None:
            self._turns_s = now_s
        wait_s = self._spec.for_s if wanted else self._spec.clear_for_s if self.due else 0
        if now_s - self._turns_s >= wait_s:
            self.due, self._turns_s = wanted, None
            self._rose, self._cause = self._rose or wanted, "; ".join(causes)

    def _violations(self, now_s: float) -> tuple[list[str], bool]:
        """Return the violations of now in words, and whether something is not known yet."""
        spec, causes = self._spec, list[str]()
        silent_s = now_s - self._last_s
        unknown = not self.heard
        for limit_s in (spec.missing_s, spec.stale_s):
            if limit_s is not None and silent_s >= limit_s:
                causes.append(f"{'not up' if spec.link else 'nothing came'} for {limit_s:g} s")
        if spec.has_limits:
            unknown = unknown or self.value is None
            causes += self._beyond(self.value, now_s)
        return causes, unknown

    def _beyond(self, value: float | None, now_s: float) -> list[str]:
        """Return in words the limits that a value is beyond; within the hysteresis too if it was."""
        spec, slack = self._spec, self._spec.hysteresis if self.due else 0.0
        found = list[str]()
        if value is not None and spec.above is not None and value > spec.above - slack:
            found.append(self._words("above", spec.above, value, value > spec.above))
        if value is not None and spec.below is not None and value < spec.below + slack:
            found.append(self._words("below", spec.below, value, value < spec.below))
        spread = None if self._spread is None else self._spread.of(now_s)
        if spread is not None and spec.changed_by is not None and spread >= spec.changed_by - slack:
            found.append(f"it changed by {spread:.6g} within {spec.within_s:g} s")
        return found

    def _words(self, way: str, limit: float, value: float, is_beyond: bool) -> str:
        """Return how a value is beyond a limit, or was before it came back within the hysteresis."""
        if is_beyond:
            self._said[way] = f"{value:.6g} is {way} {limit:g}"
        return self._said.get(way) or f"{value:.6g} is not yet back from {limit:g}"
