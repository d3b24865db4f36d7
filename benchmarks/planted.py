"""Captures with planted faults, from a seed: a job must find exactly these.

    python -m benchmarks.planted DIRECTORY --rows 1000000

Each gateway has its own bus, and a bridge from it to one trunk that all share. The first bus has a second
gateway, which takes over when the first one's bridge dies. A frame makes 2 + 2 * gateways rows: on its bus,
in its bridge, on the trunk, in every other bridge and on every other bus.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks import planted_names
from benchmarks.command import Command, run_as_command
from bus.wire.pattern import token
from capture import parquet, schema
from capture.files import capture_file, day_of, name_of

START_NS: Final = 1_780_000_000_000_000_000  # a round number, within a day for the sizes in use
KINDS: Final = ("fridge", "oven", "motor", "door")
ENVELOPES: Final = ("all", "trunk", "none")
TRUNK: Final = "trunk"
FILTERING: Final = 1  # the gateway whose bridge has a filter
FILTERED: Final = 2  # the sensor that this keeps out
_CHUNK: Final = 200_000  # frames held at once
_NEAR_HOLE_NS: Final = 1_000_000_000
_PAYLOAD: Final = 14  # bytes: "021.57 0001234"
Ints = NDArray[np.int64]
Drops = Counter[tuple[int, str]]  # (place, reason)


@dataclass
class Plan:
    """The size of a capture, and its rates of faults. `envelope`: the rows with one: all, trunk or none."""

    rows: int = 100_000
    gateways: int = 4
    seed: int = 1
    rate: float = 2000.0
    sensors: int = 200
    lost: float = 0.002
    doubled: float = 0.001
    echoed: float = 0.0005
    aged: float = 0.0005
    takeovers: int = 2
    gap_s: float = 0.25
    holes: int = 0  # times in which a recorder missed rows; no fault is planted near them
    hole_s: float = 0.3
    filtered: bool = False  # the second segment's bridge keeps the frames of one sensor out
    repeated: float = 0.02
    envelope: str = "trunk"
    offsets_ns: tuple[int, ...] = (0, 1_500_000, -700_000, 300_000)
    names: int = 1000  # in the file of names
    collisions: int = 3  # pairs of names in that file that share a token
    unknown: int = 2  # sensors that are not in that file

    @property
    def frames(self) -> int:
        return self.rows // (2 + 2 * self.gateways - 1)


@dataclass
class Truth:
    """The planted faults and values, in the words of the jobs."""

    frames: int = 0
    rows: int = 0
    missing: Counter[str] = field(default_factory=Counter)  # "STAGE GATEWAY SEGMENT"
    duplicates: Counter[str] = field(default_factory=Counter)  # "SEGMENT"
    echoes: Counter[str] = field(default_factory=Counter)
    takeovers: list[tuple[str, str, str, int]] = field(default_factory=list)  # bus, from, to, gap in ns
    by_kind: Counter[str] = field(default_factory=Counter)
    last: dict[int, tuple[int, str]] = field(default_factory=dict)  # sensor token: (ts_ns, text)
    ledger: Counter[str] = field(default_factory=Counter)  # "GATEWAY SEGMENT REASON"
    missed: Counter[str] = field(default_factory=Counter)  # "GATEWAY": rows of its recorder
    offsets_ns: dict[str, int] = field(default_factory=dict)
    collisions: dict[int, list[str]] = field(default_factory=dict)  # token -> the names that share it
    unknown: Counter[int] = field(default_factory=Counter)  # token without a name -> its rows


@dataclass
class Rows:
    """The rows of one gateway in one chunk, as parallel arrays; `place` is an index into `_PLACES`."""

    time: list[Ints] = field(default_factory=list)
    place: list[Ints] = field(default_factory=list)
    frame: list[Ints] = field(default_factory=list)

    def add(self, time_ns: Ints, place: int, frame: Ints) -> None:
        self.time.append(time_ns)
        self.frame.append(frame)
        self.place.append(np.full(len(frame), place, np.int64))


# the places of a gateway's rows, by number; {s} is its segment
RECEIVED, INTO, OUT, FROM_TRUNK, ONTO = range(5)
_PLACES: Final = (
    ("bus {s}", "{s}", "app", 0),
    ("bridge {s}", "{s}", "bus", 0),
    ("bridge {s}", TRUNK, "wire", 1),
    ("bridge {s}", TRUNK, "wire", 0),
    ("bridge {s}", "{s}", "bus", 1),
)


def generate(directory: Path, plan: Plan) -> Truth:
    """Write the capture under `directory`. Return what is in it."""
    return Maker(directory, plan).make()


class Maker:
    """The maker of one capture. It works in chunks, so that memory does not grow with the capture."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.directory, self.plan = directory, plan
        self.random = np.random.default_rng(plan.seed)
        self.truth = Truth(frames=plan.frames)
        self.segments = [f"seg-{n}" for n in range(plan.gateways)]
        self.gateways = [f"gw-{n}" for n in range(plan.gateways)]
        self.standby = plan.gateways  # its number: it serves the first segment too
        self.names = [*self.gateways, "gw-0b"]
        self.cap_seq = [0] * len(self.names)
        self.step_ns = int(1e9 / plan.rate)
        offsets = [*plan.offsets_ns, *([0] * plan.gateways)]
        self.offset = [*offsets[: plan.gateways], 450_000]
        self.truth.offsets_ns = dict(zip(self.names, self.offset, strict=True))
        self.sensor_tokens = np.array([token(f"sensor-{n}") for n in range(plan.sensors)], np.uint32)
        self.kind_tokens = np.array([token(name) for name in KINDS], np.uint32)
        self._plan_names()
        pattern = self.kind_tokens[FILTERED % len(KINDS)], self.sensor_tokens[FILTERED]
        self.kept_out = [pattern] if plan.filtered else []
        self._plan_takeovers()
        self._plan_holes()

    def _plan_names(self) -> None:
        """Plant the file of names. The last sensors have no name there."""
        plan = self.plan
        named = [*KINDS, *(f"sensor-{n}" for n in range(plan.sensors - plan.unknown))]
        self.named = planted_names.plant(named, plan.names, plan.collisions, plan.seed)
        self.truth.collisions = self.named.collisions

    def _plan_takeovers(self) -> None:
        """Plan evenly spaced deaths of the first segment's gateway; the other takes over after the gap."""
        length = self.plan.frames * self.step_ns
        count, gap = self.plan.takeovers, int(self.plan.gap_s * 1e9)
        self.deaths = [START_NS + (n + 1) * length // (count + 1) for n in range(count)]
        pair = (self.gateways[0], "gw-0b")
        for n in range(count):
            self.truth.takeovers.append((self.segments[0], pair[n % 2], pair[1 - n % 2], gap))

    def _plan_holes(self) -> None:
        """Plan evenly spaced holes in what the recorders wrote: (gateway, begin, end)."""
        length, count = self.plan.frames * self.step_ns, self.plan.holes
        begins = [START_NS + (2 * n + 1) * length // (2 * count) for n in range(count)]
        self.holes = [
            (1 + n % (self.plan.gateways - 1), at, at + int(self.plan.hole_s * 1e9))
            for n, at in enumerate(begins)
        ]

    def in_hole(self, when: Ints, gateway: int | None = None, margin_ns: int = 0) -> NDArray[np.bool_]:
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
            number[when >= death + int(self.plan.gap_s * 1e9)] = 0 if n % 2 else self.standby
        return number

    def make(self) -> Truth:
        self.directory.mkdir(parents=True, exist_ok=True)
        planted_names.write(self.directory, self.named)
        for first in range(0, self.plan.frames, _CHUNK):
            self._chunk(first, min(_CHUNK, self.plan.frames - first))
        return self.truth

    def _chunk(self, first: int, count: int) -> None:
        frames = Frames(self, first, count)
        rows = [Rows() for _ in self.names]
        drops: list[Drops] = [Counter() for _ in self.names]
        self._source(frames, rows, drops)
        for segment in range(self.plan.gateways):
            self._deliver(frames, segment, rows, drops)
        for number, part in enumerate(rows):
            if sum(map(len, part.frame)):
                self._write(number, part, frames, drops[number])

    def _source(self, f: "Frames", rows: list[Rows], drops: list[Drops]) -> None:
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
                lost = int(np.count_nonzero(f.lost_at_source[here]))
                self._miss("at the sender", self.names[gateway], others, lost)
                self._drop(gateway, OUT, "queue full", lost, drops)
                echoed = here[f.echoed[here]]
                rows[gateway].add(f.into[echoed] + 900_000 + self.offset[gateway], ONTO, echoed)
                self.truth.echoes[segment] += len(echoed)
            self._miss_all(f.time[mine[f.carrier[mine] == -1]], [TRUNK, *others])
        f.sent = (f.carrier >= 0) & ~f.lost_at_source

    def _candidates(self, segment: int) -> list[int]:
        return [0, self.standby] if segment == 0 else [segment]

    def _miss_all(self, when: Ints, segments: list[str]) -> None:
        """Note the frames that came at these times, at which the gateway that served last was dead."""
        for n, death in enumerate(self.deaths):
            inside = (when >= death) & (when < death + int(self.plan.gap_s * 1e9))
            dead = self.names[self.standby if n % 2 else 0]
            self._miss("no bridge", dead, segments, int(np.count_nonzero(inside)))

    def _miss(self, stage: str, gateway: str, segments: list[str], count: int) -> None:
        for segment in segments if count else []:
            self.truth.missing[" ".join(filter(None, (stage, gateway, segment)))] += count

    def _drop(self, gateway: int, place: int, reason: str, count: int, drops: list[Drops]) -> None:
        if count:
            segment = TRUNK if place == OUT else self.segments[0 if gateway == self.standby else gateway]
            drops[gateway][place, reason] += count
            self.truth.ledger[f"{self.names[gateway]} {segment} {reason}"] += count

    def _deliver(self, f: "Frames", g: int, rows: list[Rows], drops: list[Drops]) -> None:
        """Carry frames from the trunk into one segment's bridge and onto the segment."""
        to = np.flatnonzero(f.sent & (f.home != g))
        arrived = f.trunk[to] + self.delay(len(to), 300_000)
        carrier = self.serving(f.time[to]) if g == 0 else np.full(len(to), g)
        self._miss_all(f.time[to[carrier == -1]], [self.segments[g]])
        fault = f.fault[to] * (f.victim[to] == g)
        for gateway in self._candidates(g):
            here = carrier == gateway
            self._arrive(f, gateway, to[here], arrived[here] + self.offset[gateway], fault[here], rows, drops)

    def _arrive(
        self, f: "Frames", gateway: int, frame: Ints, when: Ints, fault: Ints,
        rows: list[Rows], drops: list[Drops],
    ) -> None:  # fmt: skip
        """Apply the faults at one gateway: lost on the wire, lost or doubled in the bridge, too old."""
        segment = self.segments[0 if gateway == self.standby else gateway]
        came = fault != Frames.LOST_ON_WIRE
        lost = fault == Frames.LOST_INSIDE
        out = came & ~lost & ~(f.filtered[frame] & (gateway == FILTERING))
        twice = fault == Frames.DOUBLED
        rows[gateway].add(when[came], FROM_TRUNK, frame[came])
        rows[gateway].add(when[out] + 40_000, ONTO, frame[out])
        rows[gateway].add(when[twice] + 60_000, ONTO, frame[twice])
        self._miss("on the way", "", [segment], int(np.count_nonzero(~came)))
        self._miss("in bridge", self.names[gateway], [segment], int(np.count_nonzero(lost)))
        self._drop(gateway, ONTO, "aged out", int(np.count_nonzero(fault == Frames.AGED)), drops)
        self.truth.duplicates[segment] += int(np.count_nonzero(twice))

    def delay(self, count: int, least_ns: int) -> Ints:
        return (least_ns + self.random.exponential(100_000, count)).astype(np.int64)

    def _write(self, number: int, part: Rows, f: "Frames", drops: Drops) -> None:
        time_ns, place, frame = (np.concatenate(x) for x in (part.time, part.place, part.frame))
        order = np.argsort(time_ns, kind="stable")
        time_ns, place, frame = time_ns[order], place[order], frame[order]
        missed = self.in_hole(time_ns, number)
        seq = self.cap_seq[number] + np.flatnonzero(~missed)
        first, self.cap_seq[number] = self.cap_seq[number], self.cap_seq[number] + len(time_ns)
        table = self._table(number, time_ns[~missed], place[~missed], frame[~missed], f)
        self._count_unknown(f.tokens[frame[~missed], 1])
        self.truth.missed[self.names[number]] += int(np.count_nonzero(missed))
        if drops:
            ledger = self._ledger(number, int(time_ns.max()), drops)
            seq = np.concatenate([seq, self.cap_seq[number] + np.arange(len(ledger))])
            self.cap_seq[number] += len(ledger)
            table = pa.concat_tables([table, ledger])
        table = table.set_column(2, table.schema.field("cap_seq"), pa.array(seq))
        self.truth.rows += len(table)
        path = capture_file(
            self.directory, day_of(int(time_ns.min())), self.names[number], name_of(START_NS, first)
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write(path, table.schema, table.to_batches(max_chunksize=parquet.GROUP_ROWS))

    def _count_unknown(self, tokens: NDArray[np.uint32]) -> None:
        for one in self.sensor_tokens[self.plan.sensors - self.plan.unknown :]:
            self.truth.unknown[int(one)] += int(np.count_nonzero(tokens == one))

    def _schema(self, number: int) -> pa.Schema:
        return schema.arrow_schema(
            {
                schema.META_VERSION: str(schema.VERSION),
                schema.META_GATEWAY: self.names[number],
                schema.META_BOOT: str(START_NS),
                schema.META_TOPOLOGY: self._topology(number),
            }
        )

    def _table(self, number: int, time_ns: Ints, place: Ints, frame: Ints, f: "Frames") -> pa.Table:
        count = len(time_ns)
        columns = self._places(number, place)
        bare = self._is_bare(place)
        columns |= {
            "ts_ns": pa.array(time_ns),
            "boot": pa.array(np.full(count, START_NS)),
            "cap_seq": pa.array(np.zeros(count, np.int64)),
            "kind": pa.array(np.zeros(count, np.int16)),
            "count": pa.array(np.ones(count, np.int64)),
            "verdict": pa.array(np.zeros(count, np.int16)),
            "reason": pa.nulls(count, pa.string()),
            "message_bytes": pa.array(np.where(bare, 26, 38).astype(np.int32)),
            "origin": pa.array(f.origin[frame], mask=bare),
            "seq": pa.array(f.first + frame, mask=bare),
            "hops": pa.array(np.where(place >= FROM_TRUNK, 7, 8).astype(np.int16), mask=bare),
            "type": pa.array(np.ones(count, np.int16)),
            "tokens": pa.ListArray.from_arrays(
                pa.array(np.arange(0, 2 * count + 1, 2, dtype=np.int32)),
                pa.array(f.tokens[frame].reshape(-1)),
            ),
            "payload": f.payload.take(pa.array(frame)),
        }
        return self._ordered(number, columns)

    def _is_bare(self, place: Ints) -> NDArray[np.bool_]:
        if self.plan.envelope == "all":
            return np.zeros(len(place), bool)
        if self.plan.envelope == "none":
            return np.ones(len(place), bool)
        return ~np.isin(place, (OUT, FROM_TRUNK))

    def _places(self, number: int, place: Ints) -> dict[str, pa.Array]:
        segment = self.segments[0 if number == self.standby else number]
        table = [[str(word).format(s=segment) for word in row[:3]] for row in _PLACES]
        columns: dict[str, pa.Array] = {}
        index = pa.array(place.astype(np.int32))
        for n, name in enumerate(("hub", "bus", "peer")):
            columns[name] = pa.array([row[n] for row in table]).take(index)
        directions = np.array([row[3] for row in _PLACES], np.int16)
        columns["dir"] = pa.array(directions[place])
        return columns

    def _ordered(self, number: int, columns: dict[str, Any]) -> pa.Table:
        wanted = self._schema(number)
        return pa.Table.from_arrays(
            [columns[n].cast(wanted.field(n).type) for n in wanted.names], schema=wanted
        )

    def _ledger(self, number: int, time_ns: int, drops: Drops) -> pa.Table:
        """Return the ledger after a chunk: a row for each pipe and reason, as the recorder adds it."""
        keys = sorted(drops)
        place = np.array([key[0] for key in keys], np.int64)
        columns = self._places(number, place)
        count = len(keys)
        wanted = self._schema(number)
        columns |= {
            "ts_ns": pa.array([time_ns] * count),
            "boot": pa.array([START_NS] * count),
            "cap_seq": pa.array([0] * count),
            "kind": pa.array([schema.Kind.LEDGER.value] * count),
            "count": pa.array([drops[key] for key in keys]),
            "verdict": pa.array([schema.verdict_of(key[1]).value for key in keys]),
            "reason": pa.array([key[1] for key in keys]),
        }
        nothing = {n: pa.nulls(count, wanted.field(n).type) for n in wanted.names if n not in columns}
        return self._ordered(number, {**columns, **nothing})

    def _topology(self, number: int) -> str:
        """Return what the tap records, as it says in each file."""
        segment = self.segments[0 if number == self.standby else number]
        onto: dict[str, Any] = {"segment": segment}
        if number == FILTERING:
            onto["deny_out"] = [[int(one) for one in pattern] for pattern in self.kept_out]
        return json.dumps({f"bridge {segment}": {"gateways": [], "sides": [onto, {"segment": TRUNK}]}})


class Frames:
    """The frames of one chunk and the faults of each, as parallel arrays of length `count`."""

    LOST_ON_WIRE, LOST_INSIDE, DOUBLED, AGED = 1, 2, 3, 4

    def __init__(self, maker: Maker, first: int, count: int) -> None:
        plan, random = maker.plan, maker.random
        self.first, self.count = first, count
        index = np.arange(first, first + count)
        self.time = START_NS + index * maker.step_ns + random.integers(0, maker.step_ns, count)
        sensor = random.integers(0, plan.sensors, count)
        self.home = sensor % plan.gateways
        self.origin = self.home + 1000
        self.carrier = np.where(self.home == 0, maker.serving(self.time), self.home)
        self.into = self.time + maker.delay(count, 20_000)
        self.trunk = self.into + maker.delay(count, 30_000)
        self.kind = sensor % len(KINDS)
        self.tokens = np.stack([maker.kind_tokens[self.kind], maker.sensor_tokens[sensor]], axis=1)
        centi = random.integers(1500, 3000, count)
        number = index.copy()
        again = random.random(count) < plan.repeated  # equal contents, some of them close in time
        number[again], centi[again] = 0, 2000
        self.filtered = plan.filtered & (sensor == FILTERED)
        self._make_faults(maker, again)
        self.payload = _payload(centi, number)
        self.sent = np.zeros(count, bool)
        self._note_truth(maker, sensor, centi, number)

    def _make_faults(self, maker: Maker, equal: NDArray[np.bool_]) -> None:
        """Plan at most one fault a frame, and no double of equal frames: it would cancel out with a loss."""
        plan, random = maker.plan, maker.random
        dice = random.random(self.count)
        dice[(self.carrier == -1) | maker.in_hole(self.time, margin_ns=_NEAR_HOLE_NS)] = 1.0
        edges = np.cumsum([plan.lost / 3, plan.lost / 3, plan.lost / 3, plan.doubled, plan.echoed, plan.aged])
        which = np.searchsorted(edges, dice, side="right")
        which[equal & (which == 3)] = 6
        nobody = maker.serving(self.time) == -1
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

    def _note_truth(self, maker: Maker, sensor: Ints, centi: Ints, number: Ints) -> None:
        truth = maker.truth
        for kind, count in zip(*np.unique(self.kind, return_counts=True), strict=True):
            truth.by_kind[KINDS[kind]] += int(count)
        backwards = np.arange(self.count)[::-1]
        found, at = np.unique(sensor[backwards], return_index=True)
        for one, where in zip(found, backwards[at], strict=True):
            text = _payload(centi[where : where + 1], number[where : where + 1])[0].as_py().decode()
            home_offset = maker.offset[int(self.home[where])]
            truth.last[int(maker.sensor_tokens[one])] = (int(self.time[where]) + home_offset, text)


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


def main() -> int:
    parser = Command("benchmarks.planted", __doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_seed()
    parser.add_argument("--envelope", choices=ENVELOPES, default="trunk")
    options = parser.parse_args()
    begin = time.perf_counter()
    plan = Plan(options.rows, options.gateways, options.seed, envelope=options.envelope)
    truth = generate(options.directory, plan)
    print(json.dumps({key: value for key, value in vars(truth).items() if key != "last"}, indent=1))
    print(f"{truth.rows} rows in {time.perf_counter() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    run_as_command(main)
