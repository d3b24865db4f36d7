"""`python -m tests.mutants.hunt [MODULE...]`: try mutants, and name those that no test notices."""

import argparse
import ast
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.helpers import ROOT
from tests.mutants.sites import Site, sites
from tests.test_layering import pure_modules

EXPLAINED = Path(__file__).parent / "explained.txt"
CAUGHT_MIN = 0.95
_TIMEOUT_S = 180
_WEIGHT = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "tests.mutants.plant", "--no-header")


class Mutant(NamedTuple):
    """One change of one module."""

    module: str
    site: Site

    @property
    def name(self) -> str:
        """What stays the same when other lines of the module change."""
        return f"{self.module}: {self.site.words}"


def mutants_of(module: str) -> list[Mutant]:
    return [Mutant(module, site) for site in sites(ast.parse((ROOT / module).read_text()))]


@cache
def explained() -> dict[str, str]:
    """Return why mutants are as good as the original, by their names."""
    lines = EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else []
    pairs = (line.split(" # ") for line in lines if line and not line.startswith("#"))
    return {name.strip(): why.strip() for name, why in pairs}


@cache
def tests_of(module: str) -> tuple[str, ...]:
    """Return the test files that concern a module: named like it, then users, then those of its package."""
    dotted, near = ".".join(Path(module).with_suffix("").parts), ROOT / "tests" / Path(module).parent
    every = sorted((ROOT / "tests").rglob("test_*.py"))
    users, beside = [file for file in every if _imports(file, dotted)], sorted(near.glob("test_*.py"))
    found = [*users, *beside] or [file for file in every if near.parent in file.parents]
    found.sort(key=lambda file: file.stem != f"test_{Path(module).stem}")
    return tuple(str(file.relative_to(ROOT)) for file in dict.fromkeys(found) if _is_quick(file, module))


def _is_quick(file: Path, module: str) -> bool:
    """Return whether a test needs no Spark, or is of a module that does; and is not of the whole system."""
    slow = {"kernel", "system", "docs", *(() if module.startswith("pipeline") else ("pipeline",))}
    return not slow & set(file.relative_to(ROOT).parts)


def _imports(file: Path, dotted: str) -> bool:
    parent, _, name = dotted.rpartition(".")
    text = file.read_text()
    return dotted in text or (f"from {parent} import" in text and name in text)


def notice(mutant: Mutant) -> bool:
    """Run the tests of a mutant's module, and return whether one of them fails."""
    environment = os.environ | {
        "MUTANT": f"{ROOT / mutant.module}:{mutant.site.number}",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "pytest", *_WEIGHT, *tests_of(mutant.module)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def chosen(modules: list[str], count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of each module by chance, or all for 0, without those that are explained."""
    chance, found = random.Random(seed), list[Mutant]()
    for module in modules:
        every = [mutant for mutant in mutants_of(module) if mutant.name not in explained()]
        found += every if not count else chance.sample(every, min(count, len(every)))
    return found


def hunt(mutants: list[Mutant], workers: int) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant and whether it was noticed, as soon as that is known and in order."""
    with ThreadPoolExecutor(workers) as pool:
        yield from zip(mutants, pool.map(notice, mutants), strict=True)


def main() -> int:
    """Print the mutants that live, and the share that was caught. Return 1 if it is too small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="paths; by default all without I/O that need no Spark")
    parser.add_argument("--count", type=int, default=5, help="mutants of each module (5); 0: all")
    parser.add_argument("--seed", type=int, default=1, help="for the choice among them (1)")
    parser.add_argument("--workers", type=int, default=2, help="runs of pytest at once (2)")
    options = parser.parse_args()
    modules = options.modules or [path for path in pure_modules() if not path.startswith("pipeline")]
    dull = [module for module in modules if not tests_of(module)]
    mutants = chosen([module for module in modules if module not in dull], options.count, options.seed)
    caught = 0
    for mutant, noticed in hunt(mutants, options.workers):
        caught += noticed
        if not noticed:
            print(f"lives: {mutant.module}:{mutant.site.line}: {mutant.site.words}", flush=True)
    for module in dull:
        print(f"no tests: {module}")
    share = caught / max(1, len(mutants))
    print(f"{caught} of {len(mutants)} mutants of {len(modules)} modules caught: {share:.1%}")
    return int(share < CAUGHT_MIN or bool(dull))


if __name__ == "__main__":
    sys.exit(main())
