"""The cost of the signals in a capture, beside cantools: processor time of a frame with four signals.

    python -m benchmarks.signals
    python -m benchmarks.signals 8000000

Frames of 30 messages are written to a capture. `kernel`: to the values of all signals. `sums`, `windows`,
`table`: what `buscoupler signals` does with them in each of its processes, from the files on: sums by signal,
windows of 100 ms, and a table of all values. `cantools`: `decode_message` for each frame. In turns, and the
least of some runs; the capture is twice as large in a second pass, to see whether the cost grows.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import cantools
import numpy as np
import pyarrow as pa

from bridges.protocols.dbc.columns import Decoder
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.series import PAD, Frames
from bus.machine.scratch import Scratch
from bus.names import Names
from bus.wire.frame import PUB
from bus.wire.pattern import token
from capture import files, parquet
from capture.schema import arrow_schema
from pipeline.input.span import Span
from pipeline.signals.databases import Database
from pipeline.signals.pieces import Task, divided, listed
from pipeline.signals.table import Files
from pipeline.signals.wanted import Wanted
from pipeline.signals.work import Bins, Sums, Work

MESSAGES: Final = 30
FRAMES: Final = 2_000_000
RUNS: Final = 3
_FILE, _BATCH = 1_000_000, 100_000
START_NS, EVERY_NS = 1_795_281_426_000_000_000, 333_000


def source() -> str:
    """Return a database: four signals in each message, of both orders, signed and scaled."""
    signals = (
        'A : 0|16@1+ (0.25,0) [0|0] "rpm"', 'B : 16|12@1- (0.5,-40) [0|0] "degC"',
        'C : 39|16@0- (0.1,0) [0|0] "V"', 'D : 48|8@1+ (1,0) [0|0] ""',
    )  # fmt: skip
    lines = ['VERSION ""', "BU_: ECU"]
    for number in range(MESSAGES):
        lines += [f"BO_ {100 + 7 * number} M{number}: 8 ECU", *(f" SG_ {one} ECU" for one in signals)]
    return "\n".join((*lines, ""))


def frames(first: int, count: int) -> tuple[Any, Any]:
    """Return identifiers, and data of which some signals are smooth and some are noise."""
    chance, numbers = np.random.default_rng(first), np.arange(first, first + count)
    identifiers = (100 + 7 * chance.integers(0, MESSAGES, count)).astype(np.uint32)
    data = np.zeros((count, 8), np.uint8)
    smooth = (np.sin(numbers / 5000 + identifiers) * 2000 + 3000).astype("<u2")
    data[:, :2] = smooth.view(np.uint8).reshape(count, 2)
    data[:, 2] = numbers // 1000 % 256
    data[:, 3:7] = chance.integers(0, 16, (count, 4))
    return identifiers, data


def write(root: Path, count: int) -> None:
    """Write a capture of so many frames, as messages `car/ID`."""
    for first in range(0, count, _FILE):
        some = range(first, min(first + _FILE, count), _BATCH)
        batches = [_rows(at, min(_BATCH, count - at)) for at in some]
        day = files.day_of(START_NS + first * EVERY_NS)
        path = files.capture_file(root, day, "gw-a", files.name_of(5, first))
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write(path, arrow_schema(), batches)


def _rows(first: int, count: int) -> pa.RecordBatch:
    identifiers, data = frames(first, count)
    tokens = np.column_stack([np.full(count, token("car"), np.uint32), identifiers]).ravel()
    same = {
        "boot": 5, "kind": 0, "hub": "bridge car", "bus": "can can0", "peer": "can0", "dir": 0, "count": 1,
        "verdict": 0, "message_bytes": 20, "type": int(PUB),
    }  # fmt: skip
    numbers = np.arange(first, first + count)
    columns = {
        "ts_ns": pa.array(START_NS + numbers * EVERY_NS),
        "cap_seq": pa.array(numbers),
        "tokens": pa.ListArray.from_arrays(_offsets(count, 2), pa.array(tokens)),
        "payload": pa.Array.from_buffers(
            pa.binary(), count, [None, _offsets(count, 8).buffers()[1], pa.py_buffer(data.tobytes())]
        ),
    }
    none = pa.array(np.zeros(count, np.int32))
    columns |= {name: pa.array([value]).take(none) for name, value in same.items()}
    schema = arrow_schema()
    made = [
        columns[one.name].cast(one.type) if one.name in columns else pa.nulls(count, one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _offsets(count: int, width: int) -> pa.Array:
    return pa.array(np.arange(0, width * (count + 1), width, dtype=np.int32))


def spent(work: Callable[[], object]) -> float:
    """Return the seconds of processor time of this process that some work takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def kernel(count: int) -> Callable[[], object]:
    """Make the decoding of frames that are in memory."""
    identifiers, data = frames(0, count)
    octets = np.concatenate([data.ravel(), np.zeros(PAD, np.uint8)])
    given = Frames(identifiers, 8 * np.arange(count), np.full(count, 8), octets)
    decoder = Decoder(load(source(), "dbc").messages.values())
    return lambda: decoder.decode(given)


def one_by_one(count: int) -> Callable[[], object]:
    """Make the same by cantools."""
    database: Any = cantools.database.load_string(source(), "dbc")
    identifiers, data = frames(0, count)
    given = [(int(one), bytes(row)) for one, row in zip(identifiers, data, strict=True)]
    return lambda: [database.decode_message(one, row) for one, row in given]


def piecewise(root: Path, make: Callable[[], Work]) -> Callable[[], object]:
    """Make work on all pieces of a capture, as the processes of a job share them."""
    messages = tuple(load(source(), "dbc").messages.values())
    wanted = Wanted((Database("", messages),), ((token("car"),), (token("can"),)), Names(["car", "car/0x"]))
    place = str(files.days_directory(root))
    found = listed(place, Span())
    assert found is not None
    pieces = divided(found[0])

    def run() -> None:
        task = Task(place, found[1], wanted, make())
        for piece in pieces:
            for _ in task(piece):
                pass

    return run


def works(root: Path, count: int) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield what is measured: its name, how many frames, and the work."""
    some = min(count, 131_072)
    yield "kernel", some, kernel(some)
    few = min(count, 20_000)
    yield "cantools", few, one_by_one(few)
    yield "sums", count, piecewise(root, lambda: Sums(1000))
    yield "windows", count, piecewise(root, lambda: Bins(100_000_000))
    yield "table", count, piecewise(root, lambda: Files(f"{root}/table", "1", False, 1000))


def main(count: int) -> None:
    """Measure a capture of `count` frames, and one of twice as many."""
    random.seed(1)
    for size in (count, 2 * count):
        with Scratch("signals-") as name:
            root = Path(name)
            write(root, size)
            measured = [(what, many, list[float](), work) for what, many, work in works(root, size)]
            for _ in range(RUNS):
                for _, _, seconds, work in measured:
                    seconds.append(spent(work))
        costs = {what: min(seconds) / many for what, many, seconds, _ in measured}
        print(f"{size:,} frames, four signals each, {RUNS} runs in turns:")
        for what, cost in costs.items():
            rate, times = 1 / cost / 1e6, costs["cantools"] / cost
            print(f"  {what:9} {cost * 1e9:8,.0f} ns a frame, {rate:6.2f} M/s a core, {times:6.1f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else FRAMES)
