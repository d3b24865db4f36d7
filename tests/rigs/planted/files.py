"""The files of a planted capture: rows of a gateway as a table in the capture's schema."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bus.wire.pattern import token
from capture import parquet, schema
from capture.files import capture_file, day_of, name_of
from tests.rigs.planted.frames import Frames
from tests.rigs.planted.plan import FILTERING, FIRST_KINDS, KINDS, START_NS, Bools, Ints, Plan

TRUNK: Final = "trunk"
Drops = Counter[tuple[int, bool, str]]  # (place, whether by the second bridge, reason)


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


# the places of a gateway's rows, by number; {s} is its segment, {b} one of its bridges
RECEIVED, INTO, OUT, FROM_TRUNK, ONTO = range(5)
_BESIDE: Final = " beside"  # ends the name of a second bridge
_PLACES: Final = (
    ("bus {s}", "{s}", "app", 0),
    ("bridge {b}", "{s}", "bus", 0),
    ("bridge {b}", TRUNK, "wire", 1),
    ("bridge {b}", TRUNK, "wire", 0),
    ("bridge {b}", "{s}", "bus", 1),
)


class Files:
    """Writes the rows of gateways, and numbers them; `names` and `segments` are those of the gateways."""

    def __init__(
        self, directory: Path, plan: Plan, names: Sequence[str], segments: Sequence[str],
        kept_out: Sequence[Sequence[Any]],
    ) -> None:  # fmt: skip
        self._directory, self._plan, self._names, self._segments = directory, plan, names, segments
        self._kept_out = [[int(one) for one in pattern] for pattern in kept_out]
        self._cap_seq = [0] * len(names)

    def has_begun(self, number: int) -> bool:
        """Return whether a gateway has recorded something."""
        return self._cap_seq[number] > 0

    def write(
        self, number: int, time_ns: Ints, place: Ints, frame: Ints, f: Frames, missed: Bools, drops: Drops,
        end_ns: int | None = None,
    ) -> int:  # fmt: skip
        """Write the rows of a gateway but those that its recorder `missed`, and the last one if that is
        stopped at `end_ns`. Return how many there are."""
        first = self._cap_seq[number]
        seq = first + np.flatnonzero(~missed)
        self._cap_seq[number] += len(time_ns)
        table = self._table(number, time_ns[~missed], place[~missed], frame[~missed], f)
        if drops:
            ledger = self._ledger(number, int(time_ns.max()), drops)
            seq = np.concatenate([seq, self._cap_seq[number] + np.arange(len(ledger))])
            self._cap_seq[number] += len(ledger)
            table = pa.concat_tables([table, ledger])
        if end_ns is not None:
            table = pa.concat_tables([table, self._end(number, end_ns)])
            seq = np.concatenate([seq, [self._cap_seq[number]]])
            self._cap_seq[number] += 1
        table = table.set_column(2, table.schema.field("cap_seq"), pa.array(seq))
        day = day_of(pa.compute.min(table["ts_ns"]).as_py())
        path = capture_file(self._directory, day, self._names[number], name_of(START_NS, first))
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write(path, table.schema, table.to_batches(max_chunksize=parquet.GROUP_ROWS))
        return len(table)

    def _schema(self, number: int) -> pa.Schema:
        return schema.arrow_schema(
            {
                schema.META_VERSION: str(schema.VERSION),
                schema.META_GATEWAY: self._names[number],
                schema.META_BOOT: str(START_NS),
                schema.META_TOPOLOGY: self._topology(number),
            }
        )

    def _table(self, number: int, time_ns: Ints, place: Ints, frame: Ints, f: Frames) -> pa.Table:
        count = len(time_ns)
        columns = self._places(number, place, f.second[frame])
        bare = self._is_bare(place) | f.beat[frame]
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

    def _is_bare(self, place: Ints) -> Bools:
        if self._plan.envelope == "all":
            return np.zeros(len(place), bool)
        if self._plan.envelope == "none":
            return np.ones(len(place), bool)
        return ~np.isin(place, (OUT, FROM_TRUNK))

    def _places(self, number: int, place: Ints, second: Bools) -> dict[str, pa.Array]:
        """Name the places of frames, each carried by the first or `second` bridge."""
        segment = self._segments[number]
        bridges = segment, f"{segment}{_BESIDE}"
        table = [[str(word).format(s=segment, b=b) for word in row[:3]] for b in bridges for row in _PLACES]
        columns: dict[str, pa.Array] = {}
        index = pa.array((place + len(_PLACES) * second).astype(np.int32))
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
        place, second = (np.array([key[n] for key in keys], np.int64) for n in range(2))
        columns = self._places(number, place, second == 1)
        count = len(keys)
        wanted = self._schema(number)
        columns |= {
            "ts_ns": pa.array([time_ns] * count),
            "boot": pa.array([START_NS] * count),
            "cap_seq": pa.array([0] * count),
            "kind": pa.array([schema.Kind.LEDGER.value] * count),
            "count": pa.array([drops[key] for key in keys]),
            "verdict": pa.array([schema.verdict_of(key[-1]).value for key in keys]),
            "reason": pa.array([key[-1] for key in keys]),
        }
        nothing = {n: pa.nulls(count, wanted.field(n).type) for n in wanted.names if n not in columns}
        return self._ordered(number, {**columns, **nothing})

    def _end(self, number: int, time_ns: int) -> pa.Table:
        wanted, empty = self._schema(number), dict.fromkeys(("hub", "bus", "peer"), "")
        row = empty | {
            "ts_ns": time_ns, "boot": START_NS, "cap_seq": 0, "kind": schema.Kind.GAP.value,
            "dir": 0, "count": 0, "verdict": schema.Verdict.NOT_CAPTURED.value, "reason": "not captured",
        }  # fmt: skip
        return pa.Table.from_pylist([row], schema=wanted)

    def _topology(self, number: int) -> str:
        """Return what the tap records, as it says in each file."""
        segment = self._segments[number]
        onto: dict[str, Any] = {"segment": segment}
        if number == FILTERING:
            onto["deny_out"] = self._kept_out
        sides = [onto, {"segment": TRUNK}]
        kinds = {segment: KINDS[:FIRST_KINDS], f"{segment}{_BESIDE}": KINDS[FIRST_KINDS:]}
        bridges = kinds if self._plan.beside else {segment: ()}
        return json.dumps(
            {f"bridge {name}": {"gateways": [], "sides": _let(sides, its)} for name, its in bridges.items()}
        )


def _let(sides: Sequence[dict[str, Any]], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Let only these kinds of frames pass, or all."""
    return [side | {"allow": [[token(kind)] for kind in kinds]} if kinds else side for side in sides]
