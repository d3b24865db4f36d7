"""The plugin of pytest: a user's test gets a plant by it, and loading it imports nothing heavy."""

import subprocess
import sys

import pytest

from tests.appliance.simulated.simulated_support import text
from tests.helpers import ROOT

pytest_plugins = ["pytester"]
PLUGIN = "appliance.simulated.plugin"


def test_a_users_test_runs_and_fails_as_it_should(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", plant=text())
    pytester.makepyfile(
        """
        def test_crosses(plant):
            here = plant("plant.yaml")
            here.send("can0", "motor", b"1")
            here.expect("hall", "motor", b"1")

        def test_does_not(plant):
            plant("plant.yaml").expect("hall", "motor")
        """
    )
    result = pytester.runpytest_subprocess("-p", PLUGIN, "-p", "no:buscoupler", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*hall: motor did not come within 1 s*"])


def test_loading_it_imports_nothing_of_the_product_but_itself() -> None:
    heavy = "{'bus', 'bridges', 'topologies', 'can', 'yaml'}"
    code = f"import sys, {PLUGIN}; print([n for n in sys.modules if n.split('.')[0] in {heavy}])"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30
    )
    assert ended.stdout == "[]\n"


def test_the_distribution_names_it() -> None:
    import tomllib

    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert points == {"buscoupler": PLUGIN}
