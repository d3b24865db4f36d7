"""The stand-in for the kernel's CAN, which the tests of links share."""

from pathlib import Path

import can
import pytest

from tests.bridges.media.can.can_kernel import Kernel


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr(can, "Bus", made.open)
    monkeypatch.setattr("bridges.media.can.port._NET", tmp_path)
    monkeypatch.setattr("bridges.media.can.pipe._STATE_S", 0.01)
    monkeypatch.setattr("bridges.media.can.restart._PURGE_S", 0.0)
    monkeypatch.setattr("bridges.media.can.restart.restart", made.asked_to_restart)
    return made
