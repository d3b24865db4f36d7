"""The cost of a capture in an object store to an audit on Spark, for which pyarrow reads it.

    python -m benchmarks.buckets --rows 1000000

A planted capture is audited in turn as files of this machine and from a server of S3's protocol on loopback
(moto, in Python, which is slow). Every command has a Spark of its own. The answers are compared.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import Command, run_as_command
from capture.files import CAPTURE
from tests.rigs.planted import Plan, generate

URL = "s3a://plant/capture"


def audit(where: str, environment: Mapping[str, str]) -> tuple[float, dict[str, Any]]:
    """Run the command. Return its seconds and its answer."""
    begun_s = time.monotonic()
    words = [sys.executable, "-m", "buscoupler", "audit", where, "--json", "--quiet", "--no-resident"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment})
    taken_s = time.monotonic() - begun_s
    if not done.stdout:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    answer.pop("run")
    return taken_s, answer


def measure(directory: Path, runs: int) -> None:
    """Audit both in turn, and print the medians."""
    from tests.helpers import s3

    with s3.served() as port:
        s3.client(port).create_bucket(Bucket="plant")
        s3.put(port, directory / CAPTURE, CAPTURE)
        taken: dict[str, list[float]] = {str(directory): [], URL: []}
        answers = []
        for _ in range(runs):
            for where, times in taken.items():
                seconds, answer = audit(where, s3.environment(port))
                times.append(seconds)
                answers.append(answer)
    if any(answer != answers[0] for answer in answers):
        raise SystemExit("the answers differ")
    here_s, there_s = map(median, taken.values())
    print(
        f"files {here_s:.1f} s, store {there_s:.1f} s: {there_s / here_s:.2f} times (medians of {runs} runs)"
    )
    print(f"load average {os.getloadavg()[0]:.1f}; the answers are equal")


def main() -> int:
    parser = Command("benchmarks.buckets", __doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the capture (1000000)")
    parser.add_repeat(3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="buckets-") as name:
        generate(Path(name), Plan(rows=options.rows))
        measure(Path(name), options.repeat)
    return 0


if __name__ == "__main__":
    run_as_command(main)
