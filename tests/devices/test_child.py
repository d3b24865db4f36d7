"""A process that works for a device, and that ends by itself or says what is no report."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from bus.backoff import Backoff
from devices import child as child_module
from devices.child import Child, Work, settle
from tests.helpers.peers import until

REPORT = 'import os\nos.write(1, b\'{"state": "up"}\\n\')\n'


class Working:
    """A child that runs a program of the test, and what it has said and lost."""

    def __init__(self, place: Path, program: str) -> None:
        (place / "work_of_a_test.py").write_text(program)
        work = Work("the worker", "work_of_a_test", {}, environment={"PYTHONPATH": str(place)})
        self.reports: list[dict[str, Any]] = []
        self.losses: list[str] = []
        self.child = Child(work, self.reports.append, self.losses.append)


@asynccontextmanager
async def working(place: Path, program: str) -> AsyncIterator[Working]:
    made = Working(place, program)
    made.child.open(asyncio.get_running_loop())
    try:
        yield made
    finally:
        made.child.close()
        await asyncio.to_thread(settle, 50)


def children() -> set[str]:
    """Return the numbers of the processes that this one has started, and not forgotten."""
    return {*Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


async def test_a_child_that_ends_again_and_again_leaves_no_process_behind_and_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resets = list[Backoff]()

    class Noted(Backoff):
        def reset(self) -> None:
            resets.append(self)

    monkeypatch.setattr(child_module, "Backoff", Noted)
    monkeypatch.setattr(child_module, "uniform", lambda low, high: low / 50)
    before = children()  # what tests before have left may end meanwhile
    async with working(tmp_path, f"{REPORT}os._exit(3)\n") as made:
        await until(lambda: len(made.losses) >= 9)
        assert len(children() - before) <= 2
    assert len(made.reports) >= 9
    assert not resets  # although each has reported
    assert not children() - before


async def test_what_a_child_prints_beside_its_reports_harms_nothing(tmp_path: Path) -> None:
    printed = "os.write(1, b'a warning\\n[1]\\n7\\n\\xff\\n\\n' + b'long' * 100_000 + b'\\n')\n"
    async with working(tmp_path, f"{REPORT}{printed}{REPORT}os.write(1, b'cut o'); os._exit(1)\n") as made:
        await until(lambda: len(made.losses) >= 2)
    assert made.reports[:3] == [{"state": "up"}] * 3
