"""`python -m benchmarks`: measure all systems under all loads, for the page and the picture."""

import sys

from benchmarks.command import run_as_command
from benchmarks.picture import picture
from benchmarks.plan import plan
from benchmarks.report import MILLION, Results, markdown
from benchmarks.run import LOADS, Sample, run
from benchmarks.systems import SYSTEMS


def _tell(sample: Sample) -> None:
    values = sample.values
    words = [f"{values['delivered_per_s'] / MILLION:8.3f} M/s"] if "delivered_per_s" in values else []
    words += [f"{name} {values[name]:.4g}" for name in values if name != "delivered_per_s"]
    print(f"{sample.load:15} {sample.system:8} {sample.trouble or '  '.join(words)}", flush=True)


def main() -> int:
    """Return the exit status: 0, 1 if our own device could not be measured everywhere, 2 for wrong use."""
    todo = plan("benchmarks", __doc__, SYSTEMS, LOADS, sys.argv[1:])
    samples = run(todo.loads, todo.systems, todo.repeats, todo.seconds, _tell)
    results = Results(samples)
    if todo.directory:
        picture(results, todo.loads, todo.systems, todo.file("performance.png"))
    words = todo.circumstances()
    return todo.finished(samples, "device", lambda: markdown(results, todo.loads, todo.systems, *words))


if __name__ == "__main__":
    run_as_command(main)
