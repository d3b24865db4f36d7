"""Fuzzing of one target in a process of its own: guided by coverage where atheris is installed.

    python -m tests.fuzz.engine NAME INPUTS

The corpus in build/fuzz/NAME is kept, so the next run goes on from there; build/fuzz/NAME.inputs counts all
inputs so far. An input that breaks the parser is written to tests/fuzz/found/NAME, and ends the run with 1.
"""

import os
import sys
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Final

from tests.helpers import ROOT

PLACE: Final = ROOT / "build" / "fuzz"
_PACKAGES: Final = ["appliance", "bridges", "bus", "capture", "devices", "topologies"]
_NOTED: Final = 1000  # inputs between two notes of their number


def loaded() -> ModuleType | None:
    """Return atheris, with the product instrumented, or None if it is not installed here."""
    try:
        import atheris
    except ImportError:
        return None
    with atheris.instrument_imports(include=_PACKAGES, enable_loader_override=False):
        import tests.fuzz.targets  # noqa: F401
    return atheris  # type: ignore[no-any-return]


class Run:
    """The inputs of one run, and how many there were of this target before."""

    def __init__(self, name: str) -> None:
        from tests.fuzz.judge import Broken, judge, keep
        from tests.fuzz.targets import TARGETS

        self.target = TARGETS[name]
        self.corpus, self._note = PLACE / name, PLACE / f"{name}.inputs"
        self.corpus.mkdir(parents=True, exist_ok=True)
        self.inputs = inputs_of(name)
        self.chance = Random(self.inputs)
        self._keep, self._broken, self._judge = keep, Broken, judge
        for number, seed in enumerate(self.target.seeds()):
            (self.corpus / f"seed-{number}").write_bytes(seed)

    def one(self, data: bytes) -> None:
        """Judge an input. One that breaks the parser is kept."""
        self.inputs += 1
        if self.inputs % _NOTED == 0:
            self.note()
        try:
            self._judge(self.target, data, self.chance)
        except self._broken as broken:
            self.note()
            self._keep(broken)
            raise

    def note(self) -> None:
        self._note.write_text(f"{self.inputs}\n")


def inputs_of(name: str) -> int:
    """Return how many inputs a target has had in all runs here."""
    note = PLACE / f"{name}.inputs"
    return int(note.read_text()) if note.exists() else 0


def _guided(atheris: ModuleType, run: Run, inputs: int) -> None:
    """Let libFuzzer choose inputs by what they reach; half of its mutations are ours. Never returns."""
    from tests.fuzz.mutate import BYTES_MAX, CHANGES

    seeds = run.target.seeds()

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        if seed & 1:
            return bytes(atheris.Mutate(data, most))
        changed, chance = bytearray(data), Random(seed)
        for _ in range(1 + seed % 3):
            CHANGES[chance.randrange(len(CHANGES))](changed, chance, seeds)
        return bytes(changed[:most])

    settings = [
        f"-runs={inputs}",
        f"-max_len={BYTES_MAX}",
        "-rss_limit_mb=4096",
        "-timeout=60",
        "-verbosity=0",
    ]
    settings.append(f"-artifact_prefix={PLACE}/")
    atheris.Setup([sys.argv[0], *settings, str(run.corpus)], run.one, custom_mutator=mutate)
    atheris.Fuzz()


def _unguided(run: Run, inputs: int) -> None:
    from tests.fuzz.mutate import mutated

    pool = [path.read_bytes() for path in sorted(run.corpus.iterdir())]
    for _, data in zip(range(inputs), mutated(pool, run.chance), strict=False):
        run.one(data)
    run.note()


def main(name: str, inputs: int, guide: Callable[[], ModuleType | None] = loaded) -> None:
    atheris = None if os.environ.get("UNGUIDED") else guide()
    run = Run(name)
    if atheris is None:
        _unguided(run, inputs)
    else:
        _guided(atheris, run, inputs)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
