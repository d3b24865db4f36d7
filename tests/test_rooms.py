"""The rooms of `make test`: what they name is there, and a process of several runs a whole one."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.rooms import LONG, SAIL, SPARK, room, turn

MODULES = ("tests/bus/wire/test_frame.py", "tests/bus/wire/test_handshake.py")


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_what_takes_long_is_first_and_engines_before_it() -> None:
    test = "tests/pipeline/test_x.py::test_y"
    names = [f"{test}[Spark-a]", f"{test}[Sail]", f"{LONG[0]}::test_y[a::b]", f"{LONG[1]}::test_y"]
    slow = ("tests/system/test_x.py::test_y", "tests/appliance/alarms/test_rules.py::test_y")
    turns = [turn(name) for name in (*names, slow[0], f"{MODULES[0]}::test_y")]
    assert turn(slow[0]) == turn(slow[1])
    assert turns == sorted(set(turns))
    assert [room(name) for name in names] == [SPARK, SAIL, *LONG[:2]]
    assert room(f"{test}[Spark]") == room("tests/pipeline/jobs/test_z.py::test_y[Spark-spark]")
    assert room(test) == "tests/pipeline/test_x.py"


def test_two_processes_run_whole_modules() -> None:
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--no-loadscope-reorder", "-vv", *MODULES]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    processes = defaultdict[str, set[str]](set)
    for process, module in re.findall(r"^\[(gw\d+)\].* PASSED (\S+?)::", done.stdout, re.MULTILINE):
        processes[module].add(process)
    assert processes.keys() == set(MODULES), done.stdout + done.stderr
    assert len(set.union(*processes.values())) == 2
    assert {module: len(who) for module, who in processes.items()} == dict.fromkeys(MODULES, 1)


DEADLY = """\
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number: int) -> None:
    if number == 2 and {name!r} == "test_24" and not Path("died").exists():
        Path("died").touch()
        os.abort()
"""


@pytest.mark.timeout(300)
def test_a_process_that_dies_leaves_all_tests_to_the_others(tmp_path: Path) -> None:
    """It had finished a dozen rooms by then, more than the others have tests left when they take those."""
    for room_number in range(30):
        name = f"test_{room_number:02}"
        (tmp_path / f"{name}.py").write_text(DEADLY.format(name=name))
    (tmp_path / "conftest.py").write_text(
        "from tests.helpers.scheduler import Rooms\n"
        "def pytest_xdist_make_scheduler(config, log): return Rooms(config, log)\n"
    )
    done = _run_in_two(tmp_path)
    assert "1 failed, 120 passed" in done.stdout, done.stdout + done.stderr


RESULTS = """\
import pytest

@pytest.fixture
def broken():
    yield
    raise ValueError

@pytest.fixture
def left_out():
    pytest.skip("no")

@pytest.mark.parametrize("number", range(3))
def test_good(number): pass
def test_bad(): assert False
def test_broken(broken): pass
def test_left_out(left_out): pass
"""
HEARD = """\
from pathlib import Path
from tests.helpers.reports import Results

class Hears:
    def pytest_runtest_logreport(self, report):
        name = report.nodeid.partition("::")[2]
        print(report.when, name, report.outcome, file=Path("heard").open("a"))

def pytest_configure(config):
    config.pluginmanager.register(Results() if hasattr(config, "workerinput") else Hears())
"""


@pytest.mark.timeout(300)
def test_of_a_test_its_result_and_what_failed_beside_it_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(RESULTS)
    (tmp_path / "conftest.py").write_text(HEARD)
    done = _run_in_two(tmp_path)
    assert "1 failed, 4 passed, 1 skipped, 1 error" in done.stdout, done.stdout + done.stderr
    assert sorted((tmp_path / "heard").read_text().splitlines()) == [
        "call test_bad failed",
        "call test_broken passed",
        *(f"call test_good[{number}] passed" for number in range(3)),
        "setup test_left_out skipped",
        "teardown test_broken failed",
    ]


def _run_in_two(directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests of a directory in two processes of pytest-xdist, without this project's settings."""
    words = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "-n", "2", "--no-loadscope-reorder", "."]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
