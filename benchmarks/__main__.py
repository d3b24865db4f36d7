"""`python -m benchmarks`: measure all systems under all loads and write performance.md and .png."""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.picture import picture
from benchmarks.report import MILLION, Results, markdown
from benchmarks.run import LOADS, Sample, run
from benchmarks.systems import SYSTEMS

DOCS = Path(__file__).parent.parent / "docs"
QUICK_S, QUICK_REPEATS = 0.5, 1


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def _choose(known: Sequence[T], names: str) -> list[T]:
    wanted = names.split(",") if names else [item.name for item in known]
    for name in wanted:
        if name not in [item.name for item in known]:
            raise SystemExit(f"benchmarks: no {name!r}; there are {', '.join(item.name for item in known)}")
    return [item for item in known if item.name in wanted]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="NAMES", help="systems, with commas: ours,nng,nanomsg,nats,relay"
    )
    parser.add_argument(
        "--loads", default="", metavar="NAMES", help="loads, with commas: 64B,1KiB,...,roundtrip,idle"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement (default 2)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="measurements of each, medians are taken (default 3)"
    )
    parser.add_argument("--quick", action="store_true", help="one repeat of half a second")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where the report goes (default: docs for a "
        "full run; without --output a run with --only, --loads or --quick writes nothing)",
    )
    return parser


def _tell(sample: Sample) -> None:
    values = sample.values
    words = [f"{values['delivered_per_s'] / MILLION:8.3f} M/s"] if "delivered_per_s" in values else []
    words += [f"{name} {values[name]:.4g}" for name in values if name != "delivered_per_s"]
    print(f"{sample.load:15} {sample.system:8} {sample.trouble or '  '.join(words)}", flush=True)


def _interrupted(*_: object) -> None:
    raise SystemExit(1)


def main() -> int:
    """Exit status: 0; 1 when our own device could not be measured everywhere; 2 for wrong use."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, _interrupted)
    systems, loads = _choose(SYSTEMS, options.only), _choose(LOADS, options.loads)
    if options.quick:
        options.seconds, options.repeat = QUICK_S, QUICK_REPEATS
    start = time.monotonic()
    samples = run(loads, systems, options.repeat, options.seconds, _tell)
    partial = options.only or options.loads or options.quick
    directory = options.output or (None if partial else DOCS)
    if directory:
        minutes = (time.monotonic() - start) / 60
        words = f"repeats: {options.repeat}, of {options.seconds:g} s each; {minutes:.0f} minutes in all"
        command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        directory.mkdir(parents=True, exist_ok=True)
        results = Results(samples)
        picture(results, loads, systems, directory / "performance.png")
        (directory / "performance.md").write_text(markdown(results, loads, systems, command, words))
        print(f"written: {directory}/performance.md, performance.png")
    return int(any(sample.trouble and sample.system == "ours" for sample in samples))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
