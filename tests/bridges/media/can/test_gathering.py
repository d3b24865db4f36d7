"""Frames that gather before they are read, with a stand-in for the kernel: those of a stream do."""

from asyncio import get_running_loop

import pytest

from bridges.items import EXTENDED
from bridges.media.can.codec import can_id, segment
from bridges.media.can.pipe import CanPipe
from bridges.media.can.socketcan import pack_frame
from bus.hub import Hub
from bus.wire.frame import PUB, pack
from tests.bridges.media.can.can_kernel import Kernel, link_on
from tests.bridges.support import recorder, say
from tests.helpers.peers import until


async def test_a_dialogue_never_gathers(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.can.pace.BUSY_S", 60.0)
    hub, asked = Hub(), [pack(PUB, (number,), b"") for number in range(40)]
    heard = recorder(hub)
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        for number, message in enumerate(asked):
            say(hub, heard, message)
            await until(lambda: link.stats.sent > number)  # noqa: B023
            for data in segment(message, number):
                kernel.put(pack_frame((EXTENDED | can_id(0x1234, 9), data, 0)))
            await until(lambda: len(heard.messages) > number)  # noqa: B023
            assert isinstance(link.pipe, CanPipe)
            assert not link.pipe._pace.is_gathering  # noqa: SLF001
    assert heard.messages == asked


async def test_a_driver_that_runs_dry_is_filled_without_a_pause(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long confirmations gather: the time since the last look would tell our pace, not its."""
    for name in ("BUSY_S", "REFILL_S"):
        monkeypatch.setattr(f"bridges.media.can.pace.{name}", 60.0)
    hub = Hub()
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        assert isinstance(link.pipe, CanPipe)
        for name in ("_gather_s", "_half_s"):
            monkeypatch.setattr(link.pipe._pace, name, 60.0)  # noqa: SLF001
        say(hub, None, *(pack(PUB, (number,), b"") for number in range(300)))
        await until(lambda: link.stats.sent == 300)
        assert link.pipe._pace.is_gathering  # noqa: SLF001


async def test_a_stream_gathers_and_a_lone_frame_is_read_at_once(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, sent = Hub(), [pack(PUB, (number,), b"") for number in range(60)]
    heard = recorder(hub)
    frames = [
        pack_frame((EXTENDED | can_id(0x1234, 9), data, 0))
        for number, message in enumerate(sent)
        for data in segment(message, number)
    ]
    monkeypatch.setattr("bridges.media.can.pace.BUSY_S", 60.0)  # a hurried machine is no less busy
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        assert isinstance(link.pipe, CanPipe)
        monkeypatch.setattr("bridges.media.can.pace.STREAM_RATE", 0)  # it lasts as long as we want
        loop = get_running_loop()
        for raw in frames[:80]:
            kernel.put(raw)
        await until(lambda: len(heard.messages) == 40)
        assert link.pipe._pace.is_gathering  # noqa: SLF001
        for raw in frames[80:]:
            kernel.put(raw)
        await until(lambda: len(heard.messages) == 60)
        monkeypatch.setattr("bridges.media.can.pace.STREAM_RATE", 1e6)
        await until(lambda: not link.pipe._pace.is_gathering)  # type: ignore[union-attr]  # noqa: SLF001
        assert loop.remove_reader(link.pipe._fd)  # type: ignore[arg-type]  # noqa: SLF001
    assert heard.messages == sent


async def test_with_no_time_to_gather_every_frame_is_read_at_once(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.media.can.pace.BUSY_S", 60.0)
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, gather_ms=0) as link:
        await until(lambda: link.state == "up")
        for number in range(40):
            kernel.put(pack_frame((EXTENDED | can_id(0x1234, 9), segment(b"\1\0\0\0", number)[0], 0)))
        await until(lambda: len(heard.messages) == 40)
        assert isinstance(link.pipe, CanPipe)
        assert not link.pipe._pace.is_gathering  # noqa: SLF001
