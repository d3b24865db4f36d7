"""The memory of a gateway with two media and of a tap's writer, held by the short form of the benchmark."""

from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.startup import GATEWAY_MIB, WRITER_MIB, start, writer_mib
from benchmarks.systems import BenchError
from tests.helpers.ports import free_port

PAGES_MIB = 1.0
"""Resident memory has the pages of files that the kernel reads ahead, and so differs by machine."""


def test_a_gateway_with_two_media_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that compiles what it imports is larger: the first start compiles, the second is weighed."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    with suppress(BenchError):  # it was not ready in time: the second goes on with what this one compiled
        start(free_port())
    assert list(tmp_path.rglob("parsing.*.pyc"))
    found = start(free_port())
    assert found.memory_mib < GATEWAY_MIB + PAGES_MIB
    assert found.ready_s > 0


def test_a_tap_s_writer_stays_small_when_it_has_finished_files() -> None:
    idle, busy = writer_mib(500, 6.0, free_port())
    assert idle < WRITER_MIB
    assert busy < WRITER_MIB
