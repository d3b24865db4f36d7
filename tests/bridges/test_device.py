"""What opens and yet is of no use: a state with retries, as any other trouble; the example's link."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bridges.device import DevicePipe
from bus.hub import Hub
from examples.radio import RadioLink
from tests.bridges.support import until


async def test_what_cannot_be_waited_on_is_a_state_and_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "radio0").write_bytes(b"")
    hub, link = Hub(), RadioLink(str(tmp_path / "radio0"), retry_min_s=0.01, retry_max_s=0.02)
    before = len(os.listdir("/proc/self/fd"))
    link.open(hub, asyncio.get_running_loop())
    await until(lambda: link.fault == "Operation not permitted")
    os.remove(tmp_path / "radio0")
    await until(lambda: "No such file" in link.fault)
    assert hub.pipes == ()
    assert link.losses == 0
    assert [record.getMessage().count("not permitted") for record in caplog.records] == [1, 0]
    link.close()
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


class Unmakeable(RadioLink):
    def _make_pipe(self, device: int, on_close: Callable[[str], None]) -> DevicePipe:
        raise OSError(19, "No such device")


async def test_a_device_that_is_gone_before_it_has_a_pipe_is_let_go_of(tmp_path: Path) -> None:
    (tmp_path / "radio0").write_bytes(b"")
    link = Unmakeable(str(tmp_path / "radio0"), retry_min_s=0.01, retry_max_s=0.02)
    before = len(os.listdir("/proc/self/fd"))
    link.open(Hub(), asyncio.get_running_loop())
    await until(lambda: link.fault == "No such device")
    assert link.state in ("waiting", "opening")
    link.close()
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)
