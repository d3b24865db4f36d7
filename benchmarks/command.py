"""The command lines of the benchmarks: common options, the pages they write, and how they end."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

DOCS = Path(__file__).parent.parent / "docs"


class Named(Protocol):
    """A system or a load, which options can name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


class Command(argparse.ArgumentParser):
    """The options of `python -m MODULE`; its help shows the first paragraph of the docstring."""

    def __init__(self, module: str, description: str | None) -> None:
        super().__init__(prog=f"python -m {module}", description=(description or "").partition("\n\n")[0])

    def add_seconds(self, default: float) -> None:
        self.add_argument(
            "--seconds", type=float, default=default, help=f"seconds of one measurement ({default:g})"
        )

    def add_repeat(self, default: int) -> None:
        self.add_argument(
            "--repeat", type=int, default=default, help=f"measurements of each, for medians ({default})"
        )

    def add_output(self, text: str, default: Path | None = None) -> None:
        self.add_argument("--output", type=Path, default=default, metavar="PATH", help=text)

    def add_seed(self) -> None:
        self.add_argument("--seed", type=int, default=1, help="seed of the random numbers (1)")

    def add_hidden(self, option: str, **how: object) -> None:
        """Add an option for a process that the benchmark starts itself."""
        self.add_argument(option, help=argparse.SUPPRESS, **how)  # type: ignore[arg-type]

    def add_names(self, option: str, what: str, known: Sequence[N]) -> None:
        """Add an option that chooses some of the `known`, by names with commas."""
        names = [item.name for item in known]

        def chosen(text: str) -> list[N]:
            wanted = text.split(",")
            for name in wanted:
                if name not in names:
                    raise argparse.ArgumentTypeError(f"there is no {name!r}: use {', '.join(names)}")
            return [item for item in known if item.name in wanted]

        self.add_argument(
            option, type=chosen, metavar="NAMES", help=f"{what}, with commas: {','.join(names)}"
        )


def written(path: Path) -> Path:
    """Announce a file that is about to be written, and make its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"written: {path}")
    return path


def run_as_command(main: Callable[[], int | None]) -> None:
    """Exit with the status that `main` returns, 0 for None. On SIGTERM and Ctrl-C it first stops its
    processes."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)


def _interrupted(*_: object) -> None:
    raise SystemExit(1)
