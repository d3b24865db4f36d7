"""The suites of `guest/`, and conformance on the kernel's own buses, run once in the virtual machine.

Each test there is one test here.
"""

import ast
import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import can
import pytest

from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.wires import exported
from tests.conformance.makers import MAKERS
from tests.kernel import machine
from tests.kernel.freight import REPOSITORY, python_files

GUEST = Path(__file__).parent / "guest"
CONFORMANCE = Path(__file__).parents[1] / "conformance" / "test_conformance.py"  # its tests are in suite.py
SUITES = [*sorted(GUEST.glob("test_*.py")), CONFORMANCE]
ONLY = " or ".join([*(path.stem for path in SUITES[:-1]), "vcan", "stub"])  # conformance: only these
MACHINE_S = 480.0
pytestmark = pytest.mark.timeout(MACHINE_S + 60)


def guest_tests() -> Iterator[tuple[str, str]]:
    """Return file and name of each test function for the guest. The files are parsed, not imported."""
    for path in SUITES:
        source = path.with_name("suite.py") if path == CONFORMANCE else path
        for node in ast.parse(source.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _runs(path, node):
                yield path.stem, node.name


def _runs(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the guest runs it: of conformance, tests that some maker of the kernel takes part in."""
    if path == CONFORMANCE and "maker" not in [argument.arg for argument in node.args.args]:
        return False
    kernels = [maker for maker in MAKERS if "vcan" in maker.name or "stub" in maker.name]
    left_out = path == CONFORMANCE and all(node.name in maker.left_out for maker in kernels)
    return node.name.startswith("test_") and not left_out


@dataclass
class Outcome:
    """The outcome of one test function in the guest, over all its parameters."""

    passed: int = 0
    skipped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass
class Run:
    """The result of the machine's run."""

    result: machine.Result
    outcomes: dict[tuple[str, str], Outcome]


def read_report(path: Path) -> dict[tuple[str, str], Outcome]:
    """Return the outcomes in a JUnit report; none if it was never written."""
    outcomes: dict[tuple[str, str], Outcome] = defaultdict(Outcome)
    if not path.exists():
        return outcomes
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        key = case.get("classname", "").rpartition(".")[2], case.get("name", "").partition("[")[0]
        outcome = outcomes[key]
        troubles = [child for child in case if child.tag in ("failure", "error")]
        skips = [child for child in case if child.tag == "skipped"]
        outcome.failed += [f"{case.get('name')}\n{trouble.text}" for trouble in troubles]
        outcome.skipped += [skip.get("message", "") for skip in skips]
        outcome.passed += not troubles and not skips
    return outcomes


def compile_suites() -> list[Path]:
    """Import the suites, so that pytest keeps what it compiles of them, and return those files.

    It compiles tests in its own way, and in emulation that takes seconds.
    """
    for path in SUITES:
        import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))
    return [found for path in SUITES for found in path.parent.glob(f"__pycache__/{path.stem}.*-pytest-*.pyc")]


def recorded(directory: Path) -> Path:
    """Return a log of frames of all kinds that a tap of the wire has recorded on this machine."""
    kinds: tuple[dict[str, bool], ...] = (
        {"is_extended_id": False},
        {"is_extended_id": True},
        {"is_extended_id": False, "is_fd": True, "bitrate_switch": True},
        {"is_extended_id": True, "is_fd": True},
    )
    came = [
        can.Message(arbitration_id=n, data=bytes(range(n, n + n % 9)), **kinds[n % 4]) for n in range(100)
    ]
    came.append(can.Message(arbitration_id=0x7FF, is_extended_id=False, is_remote_frame=True, dlc=4))
    went = [pack(PUB, Pattern("car", 0x400 + n), bytes(n)) for n in (0, 1, 8, 12, 64)]
    return asyncio.run(exported(directory, came, went))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if reason := machine.missing():
        pytest.skip(reason)
    compile_suites()
    share = tmp_path_factory.mktemp("machine")
    report = share / "report.xml"
    suites = [str(path.relative_to(REPOSITORY)) for path in SUITES]
    pytest_ = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}"]
    log = recorded(share)
    pytest_ = ["env", f"{machine.WIRE_LOG}={log}", *pytest_]
    result = machine.run([*pytest_, "--timeout=150", "--durations=8", "-k", ONLY, *suites], share, MACHINE_S)
    return Run(result, read_report(report))


@pytest.mark.skipif(sys.dont_write_bytecode, reason="nothing that is compiled is kept")
def test_nothing_is_compiled_in_the_machine() -> None:
    if reason := machine.missing():
        pytest.skip(reason)
    compiled = compile_suites()
    assert {path.name.partition(".")[0] for path in compiled} == {path.stem for path in SUITES}
    shared = (REPOSITORY / "tests" / "__pycache__").glob("conftest.*-pytest-*.pyc")
    assert {*compiled, *shared} <= python_files()


@pytest.mark.parametrize(("file", "name"), [pytest.param(*test, id=".".join(test)) for test in guest_tests()])
def test_in_the_machine(run: Run, file: str, name: str) -> None:
    outcome = run.outcomes.get((file, name), Outcome())
    assert not outcome.failed, "\n".join(outcome.failed)
    if not outcome.passed and outcome.skipped:
        pytest.skip(outcome.skipped[0])
    if not outcome.passed:
        tail = run.result.output or run.result.console
        pytest.fail(f"this test did not run in the machine; its last output:\n{tail[-4000:]}")
