"""Mutants: what is changed, how it is put into a run, and that a run without tests for it would be seen."""

import ast
import fnmatch
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.tree import pure_modules
from tests.mutants import hunt
from tests.mutants.sites import mutated, sites

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
        "LIMIT: 5 -> 6",
        "f: 3 -> 4",
        "f: a < LIMIT and (not a == -1) -> not",
        "f: a < LIMIT and (not a == -1) -> Or",
        "f: a < LIMIT -> LtE",
        "f: a == -1 -> NotEq",
        "f: -1 -> no sign",
        "f: 1 -> 2",
        "f: a += 2 -> Sub",
        "f: 2 -> 3",
        "f: a -> not",
        "f: True -> False",
    ]


def test_each_number_makes_one_change() -> None:
    made = {ast.unparse(mutated(SOURCE, number)) for number in range(12)}
    assert len(made) == 12
    assert ast.unparse(ast.parse(SOURCE)) not in made


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr
    return done.stdout.strip()


BACKOFF = ROOT / "bus" / "backoff.py"
SHOW = "from bus.backoff import Backoff; one = Backoff(3, 99, max); print(one.next_s(), one.next_s())"


def test_a_file_runs_with_the_change_that_was_planted_before_it_was_loaded() -> None:
    number = next(
        m.site.number for m in hunt.mutants_of("bus/backoff.py") if m.site.words.endswith(": 2 -> 3")
    )
    planted = f"from tests.mutants.plant import plant_file; plant_file({str(BACKOFF)!r}, {number})\n"
    assert run(planted + SHOW) != run(SHOW)


def test_functions_run_with_the_change_that_was_planted_afterwards() -> None:
    number = next(
        m.site.number for m in hunt.mutants_of("bus/backoff.py") if m.site.words.endswith(": 2 -> 3")
    )
    codes = f"changed_functions({str(BACKOFF)!r}, {number})"
    planted = (
        f"from tests.mutants.plant import *; import bus.backoff; plant_functions({str(BACKOFF)!r}, {codes})\n"
    )
    assert run(planted + SHOW) != run(SHOW)


def test_every_module_without_io_has_tests_to_run() -> None:
    dull = [module for module in pure_modules() if hunt.mutants_of(module) and not hunt.tests_of(module)]
    assert dull == []


def test_explained_mutants_are_still_there() -> None:
    names = {mutant.name for module in pure_modules() for mutant in hunt.mutants_of(module)}
    gone = [line for line in hunt.explained() if line not in names and not fnmatch.filter(names, line)]
    assert gone == []
    assert all(hunt.explained().values())


def test_the_tests_of_a_module_notice_its_mutants_and_those_of_others_do_not() -> None:
    mutants = hunt.mutants_of("bus/backoff.py")
    assert hunt.living(mutants) == []
    assert hunt.try_with(("tests/bus/test_names.py",), mutants) == mutants


def test_tests_that_fail_without_a_change_judge_nothing(tmp_path: Path) -> None:
    failing = tmp_path / "test_failing.py"
    failing.write_text("def test_nothing(): assert False")
    with pytest.raises(hunt.Red):
        hunt.try_with((str(failing),), hunt.mutants_of("bus/backoff.py"))
