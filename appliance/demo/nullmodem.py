"""A null modem without hardware: two joined pseudo-terminals, with symbolic links as their names."""

import os
import pty
import tty
from asyncio import AbstractEventLoop
from pathlib import Path

CHUNK_BYTES = 4096


class NullModem:
    """Two joined serial ports with the paths `a` and `b`: bytes written to one can be read from the other.

    Like a real line, it buffers little: while nobody reads one end, writes to the other end wait.
    """

    def __init__(self, directory: Path, loop: AbstractEventLoop) -> None:
        self.a, self.b = directory / "line-a", directory / "line-b"
        self._ends = [self._end(self.a), self._end(self.b)]
        self._loop, self._pending = loop, [b"", b""]
        for end in (0, 1):
            loop.add_reader(self._ends[end][0], self._move, end)

    def _end(self, link: Path) -> tuple[int, int]:
        """Open a pseudo-terminal and return both descriptors.

        The slave stays open: its last close hangs up.
        """
        master, slave = pty.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        link.symlink_to(os.ttyname(slave))
        return master, slave

    def _move(self, end: int) -> None:
        """Carry bytes from one end to the other, as many as the other accepts now."""
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
        """Close both ends and remove the symbolic links. Idempotent."""
        for master, slave in self._ends:
            self._loop.remove_reader(master)
            self._loop.remove_writer(master)
            os.close(master)
            os.close(slave)
        self._ends.clear()
        for link in (self.a, self.b):
            link.unlink(missing_ok=True)
