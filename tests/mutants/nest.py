"""A plugin of pytest that tries mutants of one module, named by `MUTANTS=PATH:NUMBER,NUMBER:RESULTS`.

It forks for each mutant, so that pytest is loaded once and tests are collected once. A run without a change
comes first and tells which tests enter which function: only these run for a change of it. What runs while the
module is loaded is changed in a process that has loaded nothing yet. RESULTS gets a line for each mutant:
its number, and `caught` or `lives`.
"""

import os
import pickle
import select
import signal
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants.plant import Function, changed_functions, plant_file, plant_functions, tell

_PHASES = [Phase.explicit, Phase.generate]  # what failed need not be made small
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    phases=_PHASES,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],  # of a busy machine, tests of no mutant would fail
)
_LIMIT_S = 300  # for the tests without a change, or with one of what runs while the module is loaded
_ALL_S = 24 * 3600  # for all changes of a module
_PATIENCE = 10
_PATIENCE_MIN_S = 10.0
_RUN_MIN_S = 60.0  # the timer of a test ends only the first of Hypothesis's repetitions, so a run has one too


class Task(NamedTuple):
    """What the environment asks for."""

    path: str
    numbers: list[int]
    results: Path

    def done(self) -> dict[int, bool]:
        """Return which mutants were tried, and whether they were noticed."""
        return read_results(self.results)

    def judge(self, number: int, pid: int, limit_s: float) -> None:
        """Wait for the run of a mutant and note what became of it."""
        word = "lives" if exit_code(pid, limit_s) == 0 else "caught"
        with self.results.open("a") as file:
            file.write(f"{number} {word}\n")


def read_results(file: Path) -> dict[int, bool]:
    pairs = (line.split() for line in file.read_text().splitlines()) if file.exists() else []
    return {int(number): word == "caught" for number, word in pairs}


def task() -> Task:
    path, numbers, results = os.environ["MUTANTS"].split(":")
    return Task(path, [int(number) for number in numbers.split(",")], Path(results))


def exit_code(pid: int, limit_s: float = _LIMIT_S) -> int:
    """Wait for a process; kill it if it hangs."""
    if not select.select([os.pidfd_open(pid)], [], [], limit_s)[0]:
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


class Reach:
    """The plugin of the run without a change: which tests enter a function, and how long a test takes."""

    def __init__(self, path: str) -> None:
        self.tests = defaultdict[Function, set[str]](set)
        self.took_s = dict[str, float]()
        self._test = ""
        tell(path, lambda entered: self.tests[entered].add(self._test))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test, began_s = item.nodeid, time.monotonic()
        try:
            return (yield)
        finally:
            self.took_s[item.nodeid] = time.monotonic() - began_s

    def pytest_sessionfinish(self) -> None:
        task().results.with_suffix(".reach").write_bytes(pickle.dumps((dict(self.tests), self.took_s)))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Fork before anything of the project is loaded, for those mutants that the other process leaves."""
    asked = task()
    if not (pid := os.fork()):
        return
    if exit_code(pid, _ALL_S):
        os._exit(1)
    for number in sorted(set(asked.numbers) - set(asked.done())):
        if not (pid := os.fork()):
            plant_file(asked.path, number)
            os.environ["MUTANTS"] = ""
            return
        asked.judge(number, pid, _LIMIT_S)
    os._exit(0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """Fork before each run of the tests that were collected."""
    if not os.environ["MUTANTS"]:
        return None
    asked = task()
    if not (pid := os.fork()):
        session.config.pluginmanager.register(Reach(asked.path))
        return None
    if exit_code(pid):
        pytest.exit("the tests fail without a change", 1)
    reach, took_s = pickle.loads(asked.results.with_suffix(".reach").read_bytes())
    for number in asked.numbers:
        codes = changed_functions(asked.path, number)
        reached = {test for key in codes for test in reach.get(key, ())}
        if reached and not (pid := os.fork()):
            plant_functions(asked.path, codes)
            session.items[:] = _chosen(session.items, reached, took_s)
            return None
        if reached:
            asked.judge(number, pid, max(_RUN_MIN_S, _PATIENCE * sum(took_s[test] for test in reached)))
    return True


def _chosen(items: list[pytest.Item], names: set[str], took_s: dict[str, float]) -> list[pytest.Item]:
    """Return the tests with these names, none of which may take much longer than it did."""
    chosen = [item for item in items if item.nodeid in names]
    for item in chosen:
        item.add_marker(pytest.mark.timeout(max(_PATIENCE_MIN_S, _PATIENCE * took_s[item.nodeid])))
    return chosen
