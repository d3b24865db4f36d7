"""The alert line of an I2C bus: idle targets are polled when it is pulled, or when it is lost."""

import contextlib
import errno
import os
from asyncio import get_running_loop

from bridges.media.i2c.link import I2cLink
from bridges.media.i2c.mailbox_segments import Timing
from bridges.media.i2c.memory import MemoryAdapter
from bus.hub import Hub
from tests.bridges.media.i2c.i2c_support import FaultyAdapter, opened
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.peers import until


class EventLine:
    """An alert line that a test pulls; an eventfd signals changes."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._level = False

    def set(self, level: bool) -> None:
        self._level = level
        os.eventfd_write(self._fd, 1)

    def fileno(self) -> int:
        return self._fd

    def is_asserted(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)
        return self._level

    def close(self) -> None:
        os.close(self._fd)


async def test_the_alert_line_replaces_idle_polling(blocks: bool) -> None:
    hub, memory = Hub(), FaultyAdapter([0x20, 0x21], blocks=blocks)
    heard = recorder(hub)
    polls: list[int] = []
    memory.before = polls.append
    lazy = Timing(poll_s=0.001, idle_s=0.005, rest_s=3600)
    with contextlib.closing(EventLine()) as line, opened(memory, hub, alert_line=line, timing=lazy) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        await until(lambda: is_idle(link))
        before = len(polls)
        memory.send(0x21, MESSAGE)
        line.set(True)
        await until(lambda: heard.messages == [MESSAGE])
        line.set(False)
        await until(lambda: is_idle(link))
        assert len(polls) > before
        say(hub, heard, frame(30))  # sending needs no alert line
        await until(lambda: memory.heard[0x21] == [frame(30)] and memory.heard[0x20] == [MESSAGE, frame(30)])


def is_idle(link: I2cLink) -> bool:
    """Return whether all targets rest for long."""
    now = get_running_loop().time()
    lanes = [target._lane for target in link.targets.values()]  # noqa: SLF001
    return all(lane is not None and lane.controller.due_s > now + 60 for lane in lanes)


async def test_a_lost_alert_line_means_polling() -> None:
    hub, memory = Hub(), MemoryAdapter([0x20], blocks=True)
    heard = recorder(hub)

    class Broken(EventLine):
        def is_asserted(self) -> bool:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    with contextlib.closing(Broken()) as line, opened(memory, hub, alert_line=line):
        memory.send(0x20, MESSAGE)
        await until(lambda: heard.messages == [MESSAGE])
