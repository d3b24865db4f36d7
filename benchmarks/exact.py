"""A check of the audit: it finds exactly the faults that were planted, at any size.

    python -m benchmarks.exact --rows 20000000 --engine sail

A capture of each sort is made: all rows have envelopes (all), none (none), or those on the trunk (trunk); or
30 % of the frames are one heartbeat without envelopes (heartbeat). The clocks of the gateways are up to a
minute apart, each segment has two bridges for frames of different kinds, and some frames come late.
"""

import tempfile
import time
from pathlib import Path

from benchmarks.command import Command, run_as_command
from tests.rigs.planted import CAPTURES, generate
from tests.rigs.planted.exact import hard, planted, wrong


def main() -> int:
    parser = Command("benchmarks.exact", __doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=("spark", "sail"), default="spark")
    options = parser.parse_args()
    from pipeline import cache
    from pipeline.engine import session
    from pipeline.engine.choice import Where
    from pipeline.input.read import read, root

    where, is_wrong = Where(options.engine), False
    with tempfile.TemporaryDirectory() as name, session.session(where, session.start(where)) as spark:
        for kind in CAPTURES:
            directory = Path(name) / kind
            truth = generate(directory, hard(options.rows, kind))
            begin = time.perf_counter()
            lines = wrong(read(spark, root(str(directory))), truth)
            cache.release()
            is_wrong |= bool(lines)
            faults = sum(counts.total() for counts in planted(truth).values())
            what = "\n  ".join(lines) or f"all {faults:,} faults of {truth.frames:,} frames, and no other"
            print(f"{kind}: {truth.rows:,} rows, {time.perf_counter() - begin:.1f} s: {what}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    run_as_command(main)
