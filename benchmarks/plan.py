"""What the commands that compare systems under loads share: their options, and where the report goes."""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from benchmarks.run import Sample

DOCS = Path(__file__).parent.parent / "docs"
QUICK_S, QUICK_REPEATS = 0.5, 1


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)
S = TypeVar("S", bound=_Named)
L = TypeVar("L", bound=_Named)


@dataclass(frozen=True)
class Plan(Generic[S, L]):
    """What is measured: each load under each system, `repeats` times for `seconds`.

    `directory` is where the report goes; None for a part of all that was not told where.
    """

    program: str
    systems: list[S]
    loads: list[L]
    repeats: int
    seconds: float
    directory: Path | None
    begun_s: float = field(default_factory=time.monotonic)

    def circumstances(self) -> tuple[str, str]:
        """The command, and in words how often and how long, for a report that is written now."""
        minutes = (time.monotonic() - self.begun_s) / 60
        words = f"repeats: {self.repeats}, of {self.seconds:g} s each; {minutes:.0f} minutes in all"
        return shlex.join(["python", "-m", self.program, *sys.argv[1:]]), words

    def file(self, name: str) -> Path:
        """A file of the report; its directory is there. Says that it is written."""
        assert self.directory is not None
        self.directory.mkdir(parents=True, exist_ok=True)
        print(f"written: {self.directory / name}")
        return self.directory / name


def plan(
    program: str, description: str | None, systems: Sequence[S], loads: Sequence[L], arguments: list[str]
) -> Plan[S, L]:
    """What `arguments` ask for, of all there is. Exits with status 2 for what there is not."""
    options = _parser(program, description, systems, loads).parse_args(arguments)
    if options.quick:
        options.seconds, options.repeat = QUICK_S, QUICK_REPEATS
    partial = options.only is not None or options.loads is not None or options.quick
    return Plan(
        program,
        list(systems) if options.only is None else options.only,
        list(loads) if options.loads is None else options.loads,
        options.repeat,
        options.seconds,
        options.output or (None if partial else DOCS),
    )


def _parser(
    program: str, description: str | None, systems: Sequence[S], loads: Sequence[L]
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    _add_names(parser, "--only", "systems", systems)
    _add_names(parser, "--loads", "loads", loads)
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


def _add_names(parser: argparse.ArgumentParser, option: str, what: str, known: Sequence[N]) -> None:
    names = [item.name for item in known]

    def chosen(text: str) -> list[N]:
        wanted = text.split(",")
        for name in wanted:
            if name not in names:
                raise argparse.ArgumentTypeError(f"no {name!r}; there are {', '.join(names)}")
        return [item for item in known if item.name in wanted]

    parser.add_argument(option, type=chosen, metavar="NAMES", help=f"{what}, with commas: {','.join(names)}")


def status(samples: Iterable[Sample]) -> int:
    """1 when ours could not be measured everywhere."""
    return int(any(sample.trouble and sample.system == "ours" for sample in samples))


def run_as_command(main: Callable[[], int]) -> None:
    """Exit with what `main` returns; SIGTERM and Ctrl-C let it stop the processes that it started."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)


def _interrupted(*_: object) -> None:
    raise SystemExit(1)
