"""When gateways serve in a planted capture, when recorders miss rows, and how long frames are on the way."""

import numpy as np

from bus.wire.pattern import token
from tests.rigs.planted.plan import KINDS, START_NS, Bools, Ints, Plan


class Schedule:
    """The times of one capture, and its random numbers: all draw from one generator, in one order."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = np.random.default_rng(plan.seed)
        self.standby = plan.gateways  # its number: it serves the first segment too
        self.step_ns, self.gap_ns = int(1e9 / plan.rate), int(plan.gap_s * 1e9)
        offsets = [*plan.offsets_ns, *([0] * plan.gateways)]
        self.offset = [*offsets[: plan.gateways], 450_000]
        self.sensor_tokens = np.array([token(f"sensor-{n}") for n in range(plan.sensors)], np.uint32)
        self.kind_tokens = np.array([token(name) for name in KINDS], np.uint32)
        self._plan_takeovers()
        self._plan_holes()

    def _plan_takeovers(self) -> None:
        """Plan evenly spaced deaths of the first segment's gateway; the other takes over after the gap."""
        length = self.plan.frames * self.step_ns
        count = self.plan.takeovers
        self.deaths = [START_NS + (n + 1) * length // (count + 1) for n in range(count)]

    def _plan_holes(self) -> None:
        """Plan evenly spaced holes in what the recorders wrote: (gateway, begin, end)."""
        length, count = self.plan.frames * self.step_ns, self.plan.holes
        begins = [START_NS + (2 * n + 1) * length // (2 * count) for n in range(count)]
        self.holes = [
            (1 + n % (self.plan.gateways - 1), at, at + int(self.plan.hole_s * 1e9))
            for n, at in enumerate(begins)
        ]

    def in_hole(self, when: Ints, gateway: int | None = None, margin_ns: int = 0) -> Bools:
        """Return which times are in a hole of this gateway's recorder, or of any."""
        inside = np.zeros(len(when), bool)
        for number, begin, end in self.holes:
            if gateway in (None, number):
                inside |= (when >= begin - margin_ns) & (when < end + margin_ns)
        return inside

    def serving(self, when: Ints) -> Ints:
        """Return the number of the gateway that serves the first segment at each time; -1 in a gap."""
        number = np.zeros(len(when), np.int64)
        for n, death in enumerate(self.deaths):
            number[when >= death] = -1
            number[when >= death + self.gap_ns] = 0 if n % 2 else self.standby
        return number

    def delay(self, count: int, least_ns: int) -> Ints:
        return (least_ns + self.random.exponential(100_000, count)).astype(np.int64)
