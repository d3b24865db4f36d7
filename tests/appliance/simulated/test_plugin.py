"""The plugin of pytest: a user's test gets a plant by it, and loading it imports nothing heavy."""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest

from tests.appliance.simulated.simulated_support import text
from tests.helpers import ROOT

pytest_plugins = ["pytester"]
PLUGIN = "appliance.simulated.plugin"


def test_a_users_test_runs_and_fails_as_it_should(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", plant=text())
    pytester.makepyfile(
        """
        pytest_plugins = ["appliance.simulated.plugin"]

        def test_crosses(plant):
            here = plant("plant.yaml")
            here.send("can0", "motor", b"1")
            here.expect("hall", "motor", b"1")

        def test_does_not(plant):
            plant("plant.yaml").expect("hall", "motor")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*hall: motor did not come within 1 s*"])


def test_loading_it_imports_nothing_of_the_product_but_itself() -> None:
    heavy = "{'bus', 'bridges', 'topologies', 'can', 'yaml'}"
    code = f"import sys, {PLUGIN}; print([n for n in sys.modules if n.split('.')[0] in {heavy}])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_pytest_loads_no_module_of_the_product_by_its_own_loader() -> None:
    """It would for an entry point `pytest11`, and `runpy`, mutants and forks need the loader of Python."""
    modules = [find_spec(name) for name in ("bus", "appliance.status.schema", "bridges.bridge", "topologies")]
    assert {type(module and module.loader) for module in modules} == {SourceFileLoader}
    assert not [point for point in entry_points(group="pytest11") if point.value == PLUGIN]
