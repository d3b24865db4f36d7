"""What the tests of links share: a stand-in for the kernel's CAN, and a clock that can be moved."""

from asyncio import get_running_loop
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.media.can.can_kernel import Kernel, standing_in


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernel:
    return standing_in(monkeypatch, tmp_path)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what moves the time on which timers are due, in seconds."""
    loop: Any = get_running_loop()
    moved, real = [0.0], loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + moved[0])
    return lambda seconds: moved.__setitem__(0, moved[0] + seconds)
