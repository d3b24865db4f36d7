"""The program that runs seeds, in a process of its own: a line of JSON for each."""

import argparse
import json
import logging
import sys
import time

from tests.chaos import clock

_real = time.perf_counter


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.seeds", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--step", type=int, default=1, help="every so many seeds")
    parser.add_argument(
        "--shrink", action="store_true", help="find the fewest faults with which a seed fails"
    )
    parser.add_argument(
        "--fault",
        nargs=4,
        metavar=("KIND", "TARGET", "AT_S", "LENGTH_S"),
        help="this one alone, in place of those of the seeds",
    )
    parser.add_argument("--verbose", action="store_true", help="log what the gateways say")
    options = parser.parse_args()
    clock.install()
    # Now, because modules take the functions of `time` as they find them.
    from tests.chaos.faults import one
    from tests.chaos.outcome import outcome

    logging.basicConfig(level=logging.INFO if options.verbose else logging.CRITICAL, stream=sys.stderr)
    for seed in range(options.first, options.first + options.count, options.step):
        began = _real()
        told = outcome(seed, options.shrink, [one(*options.fault)] if options.fault else None)
        print(json.dumps({**told, "real_s": round(_real() - began, 3)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
