"""`python -m tests.mutants.hunt [MODULE...]`: try mutants, and name those that no test notices."""

import argparse
import ast
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from functools import cache
from itertools import accumulate, repeat
from pathlib import Path
from typing import NamedTuple

from tests.helpers import ROOT
from tests.helpers.tree import MAY_IMPORT, modules, pure_modules
from tests.mutants.nest import read_results
from tests.mutants.sites import Site, sites

EXPLAINED = Path(__file__).parent / "explained.txt"
CAUGHT_MIN = 0.95
LEVELS = 3
_OPTIONS = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--hypothesis-profile", "mutants", "--no-header")
_SLOW = {"kernel", "system", "docs", "conformance", "benchmarks", "commands", "embedded", "chaos"}
_SLOW |= {"mutants", "test_layering.py"}
_OF_SETTINGS = ROOT / "tests/topologies/picture/test_show.py"
"""The tests of the page that lists all settings, with their defaults and bounds."""


class Mutant(NamedTuple):
    """One change of one module."""

    module: str
    site: Site

    @property
    def name(self) -> str:
        """What stays the same when other lines of the module change."""
        return f"{self.module}: {self.site.words}"


@cache
def mutants_of(module: str) -> list[Mutant]:
    """Return all changes of a module."""
    return [Mutant(module, site) for site in sites(ast.parse((ROOT / module).read_text()))]


@cache
def explained() -> dict[str, str]:
    """Return why mutants are as good as the original, by their names or patterns of these."""
    lines = EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else []
    pairs = (line.split(" # ") for line in lines if line and not line.startswith("#"))
    return {name.strip(): why.strip() for name, why in pairs}


def is_explained(mutant: Mutant) -> bool:
    return any(mutant.name == name or fnmatchcase(mutant.name, name) for name in explained())


@cache
def tests_of(module: str) -> list[tuple[str, ...]]:
    """Return the test files that concern a module, in levels: each is for what the ones before it miss.

    Near are those in its own package that are named like it or import it. Far are those that do so elsewhere,
    those that are named like a module that imports it, and those of the page of settings where it has some.
    Last are all others in its package.
    """
    near = ROOT / "tests" / Path(module).parent
    # Other processes or Spark, not of their own package.
    slow = {*_SLOW, "pipeline"} - set(Path(module).parts)
    importing = _importing(module)
    own = {_own_test(module)}
    users = _those(own | importing, slow)
    own |= {_own_test(str(path.relative_to(ROOT))) for path in importing if path not in _tests()}
    first = sorted((file for file in users if file.parent == near), key=lambda file: file not in own)
    if "Annotated[" in (ROOT / module).read_text():
        own.add(_OF_SETTINGS)
    far = [*users, *_those(own, slow)]
    beside = _those(_beside()[near], slow) or _those(_beside()[near.parent], slow)
    return [tuple(map(str, files)) for files in _fresh(first, far, beside) if files]


def _fresh(*levels: list[Path]) -> Iterator[list[Path]]:
    """Yield the files of each level that no level before it has, relative to the project."""
    seen = set[Path]()
    for files in levels:
        fresh = [file for file in dict.fromkeys(files) if file not in seen]
        seen.update(fresh)
        yield [file.relative_to(ROOT) for file in fresh]


def _own_test(module: str) -> Path:
    return ROOT / "tests" / Path(module).parent / f"test_{Path(module).stem}.py"


@cache
def _tests() -> dict[Path, frozenset[str]]:
    """Return the parts of the paths of all test files."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {file: frozenset(file.relative_to(ROOT).parts) for file in files}


@cache
def _beside() -> dict[Path, set[Path]]:
    """Return the test files of each folder."""
    found = defaultdict[Path, set[Path]](set)
    for file in _tests():
        found[file.parent].add(file)
    return found


def _those(files: set[Path], slow: set[str]) -> list[Path]:
    """Return the test files among some in order, but for those with a slow part in their path."""
    return sorted(file for file in files if file in _tests() and not _tests()[file] & slow)


@cache
def _sources() -> list[Path]:
    return [path for package in MAY_IMPORT for path in modules(package)]


@cache
def _named(file: Path) -> frozenset[str]:
    """Return the dotted names of the product in a file, and of what it imports from its packages."""
    text, found = file.read_text(), set[str]()
    for name in re.findall(rf"\b(?:{'|'.join(MAY_IMPORT)})(?:\.\w+)+", text):
        found.update(accumulate(name.split("."), "{}.{}".format))
    for package, names in re.findall(r"\bfrom ([\w.]+) import (\([^)]*\)|.*)", text):
        found.update(f"{package}.{name}" for name in re.findall(r"\w+", names))
    return frozenset(found)


@cache
def _importers() -> dict[str, set[Path]]:
    """Return the files that import a module, tests and others, by its dotted name."""
    found = defaultdict[str, set[Path]](set)
    for file in (*_tests(), *_sources()):
        for name in _named(file):
            found[name].add(file)
    return found


def _importing(module: str) -> set[Path]:
    return _importers().get(".".join(Path(module).with_suffix("").parts), set())


class Red(Exception):
    """Tests that fail without a change, so that they can judge none."""


def try_with(files: tuple[str, ...], mutants: list[Mutant]) -> list[Mutant]:
    """Run test files for some mutants of one module, and return those that nothing notices."""
    numbers = ",".join(str(mutant.site.number) for mutant in mutants)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        results = Path(directory) / "results"
        environment = os.environ | {
            "MUTANTS": f"{ROOT / mutants[0].module}:{numbers}:{results}",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": directory,
        }
        command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.nest", *_OPTIONS, *files]
        null = subprocess.DEVNULL
        subprocess.run(command, cwd=ROOT, env=environment, stdin=null, stdout=null, stderr=null)
        caught = read_results(results)
    if len(caught) < len(mutants):
        raise Red(" ".join(files))
    return [mutant for mutant in mutants if not caught[mutant.site.number]]


def living(mutants: list[Mutant], levels: int = LEVELS) -> list[Mutant]:
    """Return those of a module's mutants that no test notices. Far files judge what the near ones miss."""
    for files in tests_of(mutants[0].module)[:levels]:
        if mutants:
            mutants = try_with(files, mutants)
    return mutants


def chosen(paths: list[str], count: int, seed: int) -> list[list[Mutant]]:
    """Return `count` mutants of each module by chance, or all for 0, without those that are explained.

    A path may be followed by `:LINE`: then all changes are of that line.
    """
    found = []
    for path in paths:
        module, _, line = path.partition(":")
        every = [mutant for mutant in mutants_of(module) if not is_explained(mutant)]
        every = [mutant for mutant in every if line in ("", str(mutant.site.line))]
        chance = random.Random(f"{seed} {module}")
        found.append(chance.sample(every, min(count, len(every))) if count else every)
    return [mutants for mutants in found if mutants]


def judged(mutants: list[Mutant], levels: int) -> tuple[list[Mutant], str]:
    """Return what lives of a module's mutants; or all and the tests that fail without a change."""
    try:
        return living(mutants, levels), ""
    except Red as red:
        return mutants, str(red)


def hunt(
    groups: list[list[Mutant]], workers: int, levels: int = LEVELS
) -> Iterator[tuple[list[Mutant], list[Mutant], str]]:
    """Yield the mutants of each module, those that live, and the tests that are red, in order."""
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(judged, groups, repeat(levels))
        for group, (lives, red) in zip(groups, found, strict=True):
            yield group, lives, red


def main() -> int:
    """Print the mutants that live, and the share that was caught. Return 1 if it is too small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "modules", nargs="*", help="PATH or PATH:LINE; by default all without I/O that need no Spark"
    )
    parser.add_argument("--count", type=int, default=5, help="mutants of each module (5); 0: all")
    parser.add_argument("--seed", type=int, default=1, help="for the choice among them (1)")
    parser.add_argument("--workers", type=int, default=2, help="modules at once (2)")
    parser.add_argument("--sample", type=int, help="try so many modules only, chosen by chance (all)")
    parser.add_argument(
        "--levels", type=int, default=LEVELS, help="1: only tests beside the module judge (3)"
    )
    options = parser.parse_args()
    paths = options.modules or [path for path in pure_modules() if not path.startswith("pipeline")]
    if options.sample:
        paths = random.Random(options.seed).sample(paths, min(options.sample, len(paths)))
    groups = chosen(paths, options.count, options.seed)
    caught = reds = 0
    for group, lives, red in hunt(groups, options.workers, options.levels):
        caught, reds = caught + len(group) - len(lives), reds + bool(red)
        print(f"{group[0].module}: {len(group) - len(lives)} of {len(group)} caught", flush=True)
        if red:
            print(f"  red without a change: {red}", flush=True)
            continue
        for mutant in lives:
            print(f"  lives: {mutant.module}:{mutant.site.line}: {mutant.site.words}", flush=True)
    total = sum(map(len, groups))
    print(f"{caught} of {total} mutants of {len(groups)} modules caught: {caught / max(1, total):.1%}")
    return int(caught < CAUGHT_MIN * total or bool(reds))


if __name__ == "__main__":
    sys.exit(main())
