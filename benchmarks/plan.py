"""The plan of a command that compares systems under loads: its options, and the directory of its report."""

import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from benchmarks import sections
from benchmarks.command import DOCS, Command, Named, written
from benchmarks.run import Sample

QUICK_S, QUICK_REPEATS = 0.5, 1


S = TypeVar("S", bound=Named)
L = TypeVar("L", bound=Named)


@dataclass(frozen=True)
class Plan(Generic[S, L]):
    """A plan: measure each load with each system, `repeats` times for `seconds`.

    `directory` is where the report goes; None for a partial run without --output.
    """

    program: str
    systems: list[S]
    loads: list[L]
    repeats: int
    seconds: float
    directory: Path | None
    begun_s: float = field(default_factory=time.monotonic)

    def circumstances(self) -> tuple[str, str]:
        """Return the command, and repeats and times in words, for a report that is written now."""
        minutes = (time.monotonic() - self.begun_s) / 60
        words = f"repeats: {self.repeats}, of {self.seconds:g} s each; {minutes:.0f} minutes in all"
        return shlex.join(["python", "-m", self.program, *sys.argv[1:]]), words

    def finished(self, samples: Iterable[Sample], section: str, text: Callable[[], str]) -> int:
        """Write the section of the page, if a report is asked for. Return the exit status: 1 if ours could
        not be measured everywhere, else 0."""
        if self.directory is not None:
            sections.write(section, self.program, text(), self.directory / sections.PAGE.name)
        return int(any(sample.trouble and sample.system == "ours" for sample in samples))

    def file(self, name: str) -> Path:
        """Announce a file of the report, and return its path."""
        assert self.directory is not None
        return written(self.directory / name)


def plan(
    program: str, description: str | None, systems: Sequence[S], loads: Sequence[L], arguments: list[str]
) -> Plan[S, L]:
    """Return the plan that `arguments` ask for. Exit with status 2 for an unknown name."""
    command = Command(program, description)
    command.add_names("--only", "systems", systems)
    command.add_names("--loads", "loads", loads)
    command.add_seconds(2.0)
    command.add_repeat(3)
    command.add_argument("--quick", action="store_true", help="one repeat of half a second")
    command.add_output(
        "directory of the report (docs for a full run; with --only, --loads or --quick none is written)"
    )
    options = command.parse_args(arguments)
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
