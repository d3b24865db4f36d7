"""A serial line of pseudo-terminals on which all ends hear each other, and what was said on it."""

import asyncio
import os
import pty
import tty
from functools import partial


class PtyLine:
    """A line with several ends, each with a `path` to open. `said` has what each end sent, in order."""

    def __init__(self, ends: int = 2) -> None:
        self._pairs = [pty.openpty() for _ in range(ends)]
        self.said: list[tuple[int, bytes]] = []
        self.times: list[tuple[float, int]] = []
        for number, (master, slave) in enumerate(self._pairs):
            tty.setraw(slave)
            os.set_blocking(master, False)
            asyncio.get_running_loop().add_reader(master, partial(self._carry, number))

    def path(self, end: int) -> str:
        return os.ttyname(self._pairs[end][1])

    def _carry(self, end: int) -> None:
        data = os.read(self._pairs[end][0], 4096)
        self.said.append((end, data))
        self.times.append((asyncio.get_running_loop().time(), end))
        for other, (master, _) in enumerate(self._pairs):
            if other != end:
                os.write(master, data)

    def close(self) -> None:
        for master, slave in self._pairs:
            asyncio.get_running_loop().remove_reader(master)
            os.close(master)
            os.close(slave)
