"""The command line of a comparison, and the directory of its report."""

from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.command import DOCS
from benchmarks.plan import Plan, plan
from benchmarks.run import Sample


class Thing(NamedTuple):
    name: str


SYSTEMS, LOADS = [Thing("ours"), Thing("theirs")], [Thing("small"), Thing("large")]


def planned(*arguments: str) -> Plan[Thing, Thing]:
    return plan("benchmarks.some", "Measures some.", SYSTEMS, LOADS, [*arguments])


def test_all_is_measured_and_the_report_goes_to_the_docs() -> None:
    found = planned()
    assert (found.systems, found.loads, found.repeats, found.seconds) == (SYSTEMS, LOADS, 3, 2.0)
    assert found.directory == DOCS
    assert (DOCS / "performance.md").exists()


@pytest.mark.parametrize("part", [["--only", "ours"], ["--loads", "large"], ["--quick"]])
def test_a_partial_run_writes_no_report_without_output(part: list[str], tmp_path: Path) -> None:
    assert planned(*part).directory is None
    written = planned(*part, "--output", str(tmp_path / "new"))
    written.file("page.md").write_text("x")
    assert (tmp_path / "new" / "page.md").exists()


def test_names_choose_in_the_order_of_the_table() -> None:
    found = planned("--only", "theirs,ours", "--loads", "large", "--quick", "--repeat", "9")
    assert (found.systems, found.loads, found.repeats, found.seconds) == (SYSTEMS, LOADS[1:], 1, 0.5)


@pytest.mark.parametrize("wrong", [["--only", "ours,others"], ["--loads", ""], ["--seconds", "long"]])
def test_an_unknown_name_is_wrong_use(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        planned(*wrong)
    assert ended.value.code == 2
    assert "benchmarks.some: error: argument --" in capsys.readouterr().err


def test_the_status_depends_only_on_our_own_system() -> None:
    good, bad = Sample("small", "ours", 0, {}), Sample("small", "theirs", 0, {}, "not installed")
    part = planned("--quick")
    assert part.finished([good, bad], "device", str) == 0
    assert part.finished([good, bad._replace(system="ours")], "device", str) == 1
