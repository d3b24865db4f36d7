"""The course of a planted capture: which frame goes where, when, and what goes wrong with it."""

from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.rigs.planted import names
from tests.rigs.planted.files import FROM_TRUNK, INTO, ONTO, OUT, RECEIVED, TRUNK, Drops, Files, Rows
from tests.rigs.planted.frames import LATE_NS, Frames
from tests.rigs.planted.plan import FILTERED, FILTERING, KINDS, Bools, Ints, Plan, Truth
from tests.rigs.planted.schedule import Schedule

CHUNK: Final = 200_000
"""Frames that are held at once, and written to a file of each gateway. With `late` ones among more, the rows
of two files are not in the order of their times."""


class Maker:
    """The maker of one capture. It works in chunks, so that memory does not grow with the capture."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.directory, self.plan = directory, plan
        self.truth = Truth(frames=plan.frames)
        self.segments = [f"seg-{n}" for n in range(plan.gateways)]
        self.gateways = [f"gw-{n}" for n in range(plan.gateways)]
        self.names = [*self.gateways, "gw-0b"]
        self.times = times = Schedule(plan)
        self.offset, self.standby = times.offset, times.standby
        self.truth.offsets_ns = dict(zip(self.names, self.offset, strict=True))
        self._plan_names()
        pattern = times.kind_tokens[FILTERED % len(KINDS)], times.sensor_tokens[FILTERED]
        kept_out = [pattern] if plan.filtered else []
        self.files = Files(directory, plan, self.names, [*self.segments, self.segments[0]], kept_out)
        pair = (self.gateways[0], "gw-0b")
        for n in range(plan.takeovers):
            self.truth.takeovers.append((self.segments[0], pair[n % 2], pair[1 - n % 2], times.gap_ns))

    def _plan_names(self) -> None:
        """Plant the file of names. The last sensors have no name there."""
        plan = self.plan
        named = [*KINDS, *(f"sensor-{n}" for n in range(plan.sensors - plan.unknown))]
        self.named = names.plant(named, plan.names, plan.collisions, plan.seed)
        self.truth.collisions = self.named.collisions

    def make(self) -> Truth:
        self.directory.mkdir(parents=True, exist_ok=True)
        names.write(self.directory, self.named)
        for first in range(0, self.plan.frames, CHUNK):
            self._chunk(first, min(CHUNK, self.plan.frames - first))
        return self.truth

    def _chunk(self, first: int, count: int) -> None:
        frames = Frames(self.times, self.truth, first, count)
        rows = [Rows() for _ in self.names]
        drops: list[Drops] = [Counter() for _ in self.names]
        self._source(frames, rows, drops)
        for segment in range(self.plan.gateways):
            self._deliver(frames, segment, rows, drops)
        is_last = first + count == self.plan.frames
        for number, part in enumerate(rows):
            ends = is_last and self.files.has_begun(number)
            if ends or any(len(one) for one in part.frame):
                self._write(number, part, frames, drops[number], is_last)

    def _source(self, f: Frames, rows: list[Rows], drops: list[Drops]) -> None:
        """Carry frames onto the bus, into the bridge and to the trunk, whose queue drops some."""
        every = np.arange(f.count)
        for home, segment in enumerate(self.segments):
            mine = every[f.home == home]
            others = [s for s in self.segments if s != segment]
            rows[home].add(f.time[mine] + self.offset[home], RECEIVED, mine)
            for gateway in self._candidates(home):
                here = mine[f.carrier[mine] == gateway]
                rows[gateway].add(f.into[here] + self.offset[gateway], INTO, here)
                rows[gateway].add(f.trunk[here] + self.offset[gateway], OUT, here)
                lost = here[f.lost_at_source[here]]
                self._miss("at the sender", self.names[gateway], others, len(lost))
                self._drop(gateway, OUT, "queue full", f.second[lost], drops)
                echoed = here[f.echoed[here]]
                rows[gateway].add(f.into[echoed] + 900_000 + self.offset[gateway], ONTO, echoed)
                self.truth.echoes[segment] += len(echoed)
            self._miss_all(f.time[mine[f.carrier[mine] == -1]], [TRUNK, *others])
        f.sent = (f.carrier >= 0) & ~f.lost_at_source

    def _candidates(self, segment: int) -> list[int]:
        return [0, self.standby] if segment == 0 else [segment]

    def _miss_all(self, when: Ints, segments: list[str]) -> None:
        """Note the frames that came at these times, at which the gateway that served last was dead."""
        for n, death in enumerate(self.times.deaths):
            inside = (when >= death) & (when < death + self.times.gap_ns)
            dead = self.names[self.standby if n % 2 else 0]
            self._miss("no bridge", dead, segments, int(np.count_nonzero(inside)))

    def _miss(self, stage: str, gateway: str, segments: list[str], count: int) -> None:
        for segment in segments if count else []:
            self.truth.missing[" ".join(filter(None, (stage, gateway, segment)))] += count

    def _drop(self, gateway: int, place: int, reason: str, second: Bools, drops: list[Drops]) -> None:
        """Note drops of frames, each by the first or `second` bridge."""
        segment = TRUNK if place == OUT else self.segments[0 if gateway == self.standby else gateway]
        for its, count in zip(*np.unique(second, return_counts=True), strict=True):
            drops[gateway][place, bool(its), reason] += int(count)
            self.truth.ledger[f"{self.names[gateway]} {segment} {reason}"] += int(count)

    def _deliver(self, f: Frames, g: int, rows: list[Rows], drops: list[Drops]) -> None:
        """Carry frames from the trunk into one segment's bridge and onto the segment."""
        to = np.flatnonzero(f.sent & (f.home != g))
        arrived = f.trunk[to] + self.times.delay(len(to), 300_000)
        carrier = self.times.serving(f.time[to]) if g == 0 else np.full(len(to), g)
        self._miss_all(f.time[to[carrier == -1]], [self.segments[g]])
        fault = f.fault[to] * (f.victim[to] == g)
        for gateway in self._candidates(g):
            here = carrier == gateway
            self._arrive(f, gateway, to[here], arrived[here] + self.offset[gateway], fault[here], rows, drops)

    def _arrive(
        self, f: Frames, gateway: int, frame: Ints, when: Ints, fault: Ints,
        rows: list[Rows], drops: list[Drops],
    ) -> None:  # fmt: skip
        """Apply the faults at one gateway: lost on the wire, lost or doubled in the bridge, too old."""
        segment = self.segments[0 if gateway == self.standby else gateway]
        came = fault != Frames.LOST_ON_WIRE
        lost = fault == Frames.LOST_INSIDE
        out = came & ~lost & ~(f.filtered[frame] & (gateway == FILTERING))
        twice = fault == Frames.DOUBLED
        when = when + LATE_NS * (fault == Frames.LATE)
        rows[gateway].add(when[came], FROM_TRUNK, frame[came])
        rows[gateway].add(when[out] + 40_000, ONTO, frame[out])
        rows[gateway].add(when[twice] + 60_000, ONTO, frame[twice])
        self._miss("on the way", "", [segment], int(np.count_nonzero(~came)))
        self._miss("in bridge", self.names[gateway], [segment], int(np.count_nonzero(lost)))
        self._drop(gateway, ONTO, "aged out", f.second[frame[fault == Frames.AGED]], drops)
        self.truth.duplicates[segment] += int(np.count_nonzero(twice))

    def _write(self, number: int, part: Rows, f: Frames, drops: Drops, is_last: bool) -> None:
        nothing = np.empty(0, np.int64)
        time_ns, place, frame = (np.concatenate([nothing, *x]) for x in (part.time, part.place, part.frame))
        order = np.argsort(time_ns, kind="stable")
        time_ns, place, frame = time_ns[order], place[order], frame[order]
        missed = self.times.in_hole(time_ns, number)
        self._count_unknown(f.tokens[frame[~missed], 1])
        self.truth.missed[self.names[number]] += int(np.count_nonzero(missed))
        last_ns = int(max([*time_ns[-1:], f.time.max() + self.offset[number]]))
        end_ns = last_ns if is_last else None
        self.truth.rows += self.files.write(number, time_ns, place, frame, f, missed, drops, end_ns)

    def _count_unknown(self, tokens: NDArray[np.uint32]) -> None:
        for one in self.times.sensor_tokens[self.plan.sensors - self.plan.unknown :]:
            self.truth.unknown[int(one)] += int(np.count_nonzero(tokens == one))
