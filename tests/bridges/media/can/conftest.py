"""The stand-in for the kernel's CAN, which the tests of links share."""

from pathlib import Path

import pytest

from tests.bridges.media.can.can_kernel import Kernel, standing_in


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernel:
    return standing_in(monkeypatch, tmp_path)
