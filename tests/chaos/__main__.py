"""`python -m tests.chaos --seeds 10000`: run seeds in several processes; go on where an earlier run stopped.

`--seed N` runs one, and shrinks its faults if it fails.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

CHUNK = 25
"""Seeds that a child runs, so that no more are lost when a run is stopped."""


def child(first: int, count: int, *more: str) -> list[str]:
    """Return the command that runs some seeds."""
    return [sys.executable, "-m", "tests.chaos.seeds", str(first), str(count), *more]


def environment() -> dict[str, str]:
    """Return an environment in which sets have the same order in each run."""
    return {**os.environ, "PYTHONHASHSEED": "0"}


def known(kept: Path) -> dict[int, dict[str, Any]]:
    """Return the outcomes of earlier runs, by seed."""
    lines = kept.read_text().splitlines() if kept.exists() else []
    return {told["seed"]: told for told in map(json.loads, lines)}


def chunks(first: int, count: int, done: set[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of seeds that are left to do: the first of each, and how many."""
    at, end = first, first + count
    while at < end:
        size = 0
        while at + size < end and at + size not in done and size < CHUNK:
            size += 1
        if size:
            yield at, size
        at += size or 1


def outcomes(todo: Iterator[tuple[int, int]], processes: int) -> Iterator[dict[str, Any]]:
    """Run chunks of seeds in so many processes at once; yield what they tell."""
    while True:
        with ExitStack() as stack:
            running = [
                stack.enter_context(_start(*chunk)) for _, chunk in zip(range(processes), todo, strict=False)
            ]
            if not running:
                return
            for one in running:
                assert one.stdout is not None
                yield from map(json.loads, one.stdout)
        if any(one.returncode for one in running):
            raise SystemExit("a process of the chaos ended with an error of its own")


def _start(first: int, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(child(first, count), stdout=subprocess.PIPE, text=True, env=environment())


def line(told: dict[str, Any]) -> str:
    """Return one line about a seed that failed, with the command that repeats it."""
    return f"seed {told['seed']}: {'; '.join(told['failures'])} | repeat: make chaos SEED={told['seed']}"


def one(seed: int, verbose: bool) -> int:
    """Run one seed; print its faults, the fewest that make it fail."""
    more = ["--shrink", *(["--verbose"] if verbose else [])]
    ran = subprocess.run(
        child(seed, 1, *more), stdout=subprocess.PIPE, text=True, env=environment(), check=True
    )
    told = json.loads(ran.stdout)
    print(*told["faults"], sep="\n")
    print(line(told) if told["failures"] else f"seed {seed}: all laws hold, digest {told['digest']}")
    return 1 if told["failures"] else 0


def many(count: int, first: int, processes: int, kept: Path) -> int:
    """Run seeds, keep their outcomes in a file, and print those that failed and the sums."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    done = known(kept)
    with kept.open("a") as file:
        for told in outcomes(chunks(first, count, set(done)), processes):
            done[told["seed"]] = told
            file.write(f"{json.dumps(told)}\n")
            file.flush()
            if told["failures"]:
                print(line(told), flush=True)
    return summed([told for seed, told in sorted(done.items()) if first <= seed < first + count])


def summed(told: list[dict[str, Any]]) -> int:
    """Print the sums of some outcomes. Return 1 if one failed."""
    failed = [one["seed"] for one in told if one["failures"]]
    silent_s = max((one["silent_s"] for one in told), default=0.0)
    print(
        f"{len(told)} seeds, {sum(one['frames'] for one in told)} frames sent and "
        f"{sum(one['heard'] for one in told)} heard, {sum(len(one['faults']) for one in told)} faults, "
        f"{sum(one['restarts'] for one in told)} restarts; "
        f"longest silence after the last fault {silent_s:.1f} s; "
        f"failed: {', '.join(map(str, failed)) or 'none'}"
    )
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="only this one, with its faults")
    parser.add_argument("--seeds", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first (0)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kept", type=Path, default=Path(".chaos/seeds.jsonl"), help="file of outcomes")
    parser.add_argument("--verbose", action="store_true", help="with --seed: log what the gateways say")
    options = parser.parse_args()
    if options.seed is not None:
        return one(options.seed, options.verbose)
    return many(options.seeds, options.first, options.processes, options.kept)


if __name__ == "__main__":
    sys.exit(main())
