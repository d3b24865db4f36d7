"""`python -m benchmarks.planted DIRECTORY --rows 1000000`: plant a capture, and print what is in it.

The captures are those of `tests.rigs.planted`.
"""

import json
import time
from pathlib import Path

from benchmarks.command import Command, run_as_command
from tests.rigs.planted import CAPTURES, generate, plan_of


def main() -> int:
    parser = Command("benchmarks.planted", __doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_seed()
    parser.add_argument("--sort", choices=CAPTURES, default="trunk", help="the rows that have envelopes")
    options = parser.parse_args()
    begin = time.perf_counter()
    plan = plan_of(options.sort, options.rows, gateways=options.gateways, seed=options.seed)
    truth = generate(options.directory, plan)
    print(json.dumps({key: value for key, value in vars(truth).items() if key != "last"}, indent=1))
    print(f"{truth.rows} rows in {time.perf_counter() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    run_as_command(main)
