"""A null modem without hardware: two pseudo-terminals whose ends are joined, named by symbolic links."""

import os
import pty
import tty
from asyncio import AbstractEventLoop
from pathlib import Path

CHUNK_BYTES = 4096


class NullModem:
    """`a` and `b` are paths of two serial ports; what is written to one is read from the other.

    Like a real line, it holds little: while one end is not read, the other end's writes wait.
    """

    def __init__(self, directory: Path) -> None:
        self.a, self.b = directory / "line-a", directory / "line-b"
        self._ends = [self._end(self.a), self._end(self.b)]
        self._loop: AbstractEventLoop | None = None
        self._pending = [b"", b""]

    def _end(self, link: Path) -> tuple[int, int]:
        """Both descriptors of a new pseudo-terminal. The slave stays open: its last close hangs up."""
        master, slave = pty.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        link.symlink_to(os.ttyname(slave))
        return master, slave

    def open(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        for end in (0, 1):
            loop.add_reader(self._ends[end][0], self._move, end)

    def _move(self, end: int) -> None:
        """Carry what one end wrote to the other, as much as it takes now."""
        assert self._loop is not None
        source, target = self._ends[end][0], self._ends[1 - end][0]
        try:
            if not self._pending[end]:
                self._pending[end] = os.read(source, CHUNK_BYTES)
            written = os.write(target, self._pending[end])
        except BlockingIOError:
            written = 0
        self._pending[end] = self._pending[end][written:]
        if self._pending[end]:
            self._loop.remove_reader(source)
            self._loop.add_writer(target, self._move, end)
        else:
            self._loop.remove_writer(target)
            self._loop.add_reader(source, self._move, end)

    def close(self) -> None:
        """Idempotent."""
        for master, slave in self._ends:
            if self._loop is not None:
                self._loop.remove_reader(master)
                self._loop.remove_writer(master)
            os.close(master)
            os.close(slave)
        self._ends.clear()
        for link in (self.a, self.b):
            link.unlink(missing_ok=True)
