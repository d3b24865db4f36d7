"""The frames of a chunk and their faults, as arrays."""

from typing import Final

import numpy as np
import pyarrow as pa

from tests.rigs.planted.plan import (
    BEATING,
    FILTERED,
    FILTERING,
    FIRST_KINDS,
    KINDS,
    START_NS,
    Bools,
    Ints,
    Truth,
)
from tests.rigs.planted.schedule import Schedule

_NEAR_HOLE_NS: Final = 1_000_000_000
LATE_NS: Final = 1_200_000_000
_BEATS_PAUSE_NS: Final = 1_500_000_000
"""Before and after a takeover: the audit has one sum for beats that follow each other, in which nobody can
tell who of two lost some."""
_PAYLOAD: Final = 14  # bytes: "021.57 0001234"


class Frames:
    """The frames of one chunk and the faults of each, as parallel arrays of length `count`."""

    LOST_ON_WIRE, LOST_INSIDE, DOUBLED, AGED, LATE = range(1, 6)

    def __init__(self, times: Schedule, truth: Truth, first: int, count: int) -> None:
        plan, random = times.plan, times.random
        self.first, self.count = first, count
        index = np.arange(first, first + count)
        self.time = START_NS + index * times.step_ns + random.integers(0, times.step_ns, count)
        self.beat = self._beats(times, index)
        sensor = np.where(self.beat, BEATING, random.integers(0, plan.sensors, count))
        self.home = sensor % plan.gateways
        self.origin = self.home + 1000
        self.carrier = np.where(self.home == 0, times.serving(self.time), self.home)
        self.into = self.time + times.delay(count, 20_000)
        self.trunk = self.into + times.delay(count, 30_000)
        self.kind = sensor % len(KINDS)
        self.second = (self.kind >= FIRST_KINDS) & plan.beside
        self.tokens = np.stack([times.kind_tokens[self.kind], times.sensor_tokens[sensor]], axis=1)
        centi = random.integers(1500, 3000, count)
        number = index.copy()
        again = random.random(count) < plan.repeated  # equal contents, some of them close in time
        number[again], centi[again] = 0, 2000
        number[self.beat], centi[self.beat] = 0, 0
        self.filtered = plan.filtered & (sensor == FILTERED)
        self._make_faults(times, again | self.beat)
        self.payload = _payload(centi, number)
        self.sent = np.zeros(count, bool)
        self._note_truth(times, truth, sensor, centi, number)

    def _beats(self, times: Schedule, index: Ints) -> Bools:
        """Return which frames are beats: at a constant rate, but not around takeovers and holes."""
        share = times.plan.heartbeat
        is_due: Bools = np.floor((index + 1) * share) > np.floor(index * share)
        return is_due & ~self._near_takeovers(times, _BEATS_PAUSE_NS)

    def _make_faults(self, times: Schedule, equal: Bools) -> None:
        """Plan at most one fault a frame, and no double of equal frames: it would cancel out with a loss."""
        plan, random = times.plan, times.random
        dice = random.random(self.count)
        dice[(self.carrier == -1) | times.in_hole(self.time, margin_ns=_NEAR_HOLE_NS)] = 1.0
        edges = np.cumsum([plan.lost / 3, plan.lost / 3, plan.lost / 3, plan.doubled, plan.echoed, plan.aged])
        which = np.searchsorted(edges, dice, side="right")
        which[equal & (which == 3)] = 6
        which[self.beat & (which < 2)] = 2  # what is lost elsewhere the sum of many beats does not tell apart
        which[self.beat & (which == 4)] = 6
        nobody = times.serving(self.time) == -1
        self.lost_at_source = (which == 0) & ~nobody  # so that its loss has only one cause
        self.echoed = which == 4
        self.fault = np.select(
            [which == 1, which == 2, which == 3, which == 5],
            [self.LOST_ON_WIRE, self.LOST_INSIDE, self.DOUBLED, self.AGED],
            0,
        )
        self.victim = (self.home + random.integers(1, plan.gateways, self.count)) % plan.gateways
        self.lost_at_source &= ~self.filtered
        self.fault[self.filtered & (self.victim == FILTERING)] = 0  # it is not due there
        self.fault[nobody & (self.victim == 0)] = 0  # no gateway was there to lose it
        if plan.late:
            # near a takeover or a hole a late frame would be seen by others
            late = random.random(self.count) < plan.late
            late &= (which == 6) & ~equal & ~self._near_takeovers(times, 3 * LATE_NS)
            self.fault[late & ~self.filtered] = self.LATE

    def _near_takeovers(self, times: Schedule, margin_ns: int) -> Bools:
        """Return which frames are near a takeover, or a hole."""
        near = times.in_hole(self.time, margin_ns=margin_ns)
        for death in times.deaths:
            near |= abs(self.time - death) < margin_ns
        return near

    def _note_truth(self, times: Schedule, truth: Truth, sensor: Ints, centi: Ints, number: Ints) -> None:
        truth.beats += int(np.count_nonzero(self.beat))
        for kind, count in zip(*np.unique(self.kind, return_counts=True), strict=True):
            truth.by_kind[KINDS[kind]] += int(count)
        backwards = np.arange(self.count)[::-1]
        found, at = np.unique(sensor[backwards], return_index=True)
        for one, where in zip(found, backwards[at], strict=True):
            text = _payload(centi[where : where + 1], number[where : where + 1])[0].as_py().decode()
            home_offset = times.offset[int(self.home[where])]
            truth.last[int(times.sensor_tokens[one])] = (int(self.time[where]) + home_offset, text)


def _payload(centi: Ints, number: Ints) -> pa.Array:
    """Return texts of fixed width, like "021.57 0001234", without a Python object for each."""
    digits = np.full((len(centi), _PAYLOAD), ord("0"), np.uint8)
    for column, power in ((0, 10_000), (1, 1000), (2, 100), (4, 10), (5, 1)):
        digits[:, column] += ((centi // power) % 10).astype(np.uint8)
    digits[:, 3], digits[:, 6] = ord("."), ord(" ")
    for column in range(7):
        digits[:, 13 - column] += ((number // 10**column) % 10).astype(np.uint8)
    data = pa.py_buffer(digits.tobytes())
    offsets = pa.py_buffer(np.arange(0, (len(centi) + 1) * _PAYLOAD, _PAYLOAD, dtype=np.int32).tobytes())
    return pa.Array.from_buffers(pa.binary(), len(centi), [None, offsets, data])
