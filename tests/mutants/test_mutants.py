"""Mutants: what is changed, how it is put into a run, and that a run without tests for it would be seen."""

import ast
import os
import subprocess
import sys

from tests.helpers import ROOT
from tests.mutants import hunt
from tests.mutants.sites import mutated, sites
from tests.test_layering import pure_modules

SOURCE = '''
LIMIT = 5
def f(a: int = 3) -> "list[int]":
    """Text 7."""
    if a < LIMIT and not a == -1:
        a += 2
    return f"{a}" + "x" if a else [True]
'''


def test_comparisons_signs_conditions_and_numbers_are_changed() -> None:
    assert [site.words for site in sites(ast.parse(SOURCE))] == [
        "LIMIT = 5 -> 6",
        "3 -> 4",
        "a < LIMIT and (not a == -1) -> not",
        "a < LIMIT and (not a == -1) -> Or",
        "a < LIMIT -> LtE",
        "a == -1 -> NotEq",
        "-1 -> no sign",
        "1 -> 2",
        "a += 2 -> Sub",
        "2 -> 3",
        "a -> not",
        "True -> False",
    ]


def test_each_number_makes_one_change() -> None:
    made = {ast.unparse(mutated(SOURCE, number)) for number in range(12)}
    assert len(made) == 12
    assert ast.unparse(ast.parse(SOURCE)) not in made


def test_a_planted_mutant_runs_instead_of_the_module() -> None:
    module = ROOT / "bus" / "backoff.py"
    number = len(sites(ast.parse(module.read_text()))) - 1
    program = "import tests.mutants.plant, bus.backoff as b; print(b.Backoff.reset.__code__.co_filename)"
    environment = os.environ | {"MUTANT": f"{module}:{number}"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(module), done.stderr


def test_every_module_without_io_has_tests_to_run() -> None:
    dull = [module for module in pure_modules() if hunt.mutants_of(module) and not hunt.tests_of(module)]
    assert dull == []


def test_explained_mutants_are_still_there() -> None:
    names = {mutant.name for module in pure_modules() for mutant in hunt.mutants_of(module)}
    assert set(hunt.explained()) <= names
    assert all(hunt.explained().values())


def test_the_tests_notice_a_mutant() -> None:
    every = hunt.mutants_of("bus/backoff.py")
    assert hunt.notice(every[0])
