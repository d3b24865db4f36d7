"""The cost of a CAN frame by a database, beside that of cantools, which reads the same bits.

    python -m benchmarks.dbc
    python -m benchmarks.dbc car.dbc 200

Each message gets random data. `decode`: to values, as cantools has them. `frames`: to the frames of a bus,
one for each signal, which cantools does not make. Prints the shortest of some runs.
"""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from timeit import repeat
from typing import Any

import cantools

from bridges.protocols.dbc.compiled import compile_message
from bridges.protocols.dbc.database import read
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.translator import Wire
from bus.ledger import Stats

ENGINE = Path(__file__).parent.parent / "examples/engine/engine.dbc"
FRAMES, RUNS = 200, 7


def frame_us(work: Callable[[Any], object], inputs: Sequence[Any]) -> float:
    """Return the microseconds that an input takes, in the shortest of some runs."""

    def run() -> None:
        for one in inputs:
            work(one)

    return min(repeat(run, number=1, repeat=RUNS)) / len(inputs) * 1e6


def main(path: str, most: int) -> None:
    """Measure the messages of a database that are not multiplexed."""
    theirs: Any = cantools.database.load_file(path, strict=False)
    ours, made = read(path), Dbc(file=path).translator(Wire("benchmark", "frames", Stats()))
    rows = list[tuple[float, float, float, int]]()
    for message in theirs.messages[:most]:
        if message.is_multiplexed() or not message.signals or message.name not in ours.messages:
            continue
        own = ours.messages[message.name]
        data = [random.randbytes(message.length) for _ in range(FRAMES)]
        batch = [(own.identifier, one, 0) for one in data]
        times = (
            frame_us(message.decode, data),
            frame_us(compile_message(own).groups[0].values, data),
            frame_us(lambda items: made.receive(items, 0.0), [batch]) / FRAMES,
        )
        rows.append((*times, len(own.signals)))
    if not rows:
        raise SystemExit(f"{path}: no message to measure")
    cantools_us, decode_us, frames_us, signals = (sum(one) / len(rows) for one in zip(*rows, strict=True))
    print(f"{len(rows)} messages of {signals:.1f} signals: cantools {cantools_us:.2f} us a frame")
    print(f"decode {decode_us:.2f} us: {cantools_us / decode_us:.1f} times as fast")
    print(f"frames {frames_us:.2f} us: {cantools_us / frames_us:.1f} times as fast")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else str(ENGINE), int(sys.argv[2]) if sys.argv[2:] else 100)
