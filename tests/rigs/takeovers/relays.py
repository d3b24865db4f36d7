"""Relays between processes, which stall or are cut, and a serial line that all its ends hear."""

import asyncio
import contextlib
import os
import pty
import time
import tty
from asyncio import StreamReader, StreamWriter, Task
from collections import deque
from pathlib import Path

from tests.helpers.ports import free_port

_OVERRUN_S = 0.5


class Relay:
    """A relay from one TCP port to another. It can stall without closing anything, or be cut."""

    def __init__(self, target: int) -> None:
        self.port, self.target = free_port(), target
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._writers: set[StreamWriter] = set()
        self._tasks: set[Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._passing.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except (OSError, asyncio.CancelledError):
            _abort(writer)
            return
        self._writers.add(far_writer)
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: StreamReader, sink: StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await self._passing.wait()
                sink.write(data)
                await sink.drain()
        _abort(sink)

    def stall(self) -> None:
        """Carry nothing more, but keep all connections open."""
        self._passing.clear()

    def heal(self) -> None:
        self._passing.set()

    def cut(self) -> None:
        """Reset all connections, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            _abort(writer)
        self._writers.clear()

    def close(self) -> None:
        self.cut()
        for task in tuple(self._tasks):
            task.cancel()


class Relays:
    """Several relays that are one link of a gateway: they are cut and opened together."""

    def __init__(self, *relays: Relay) -> None:
        self.relays = relays

    @property
    def ports(self) -> list[int]:
        return [relay.port for relay in self.relays]

    async def open(self) -> None:
        for relay in self.relays:
            await relay.open()

    def cut(self) -> None:
        for relay in self.relays:
            relay.cut()

    def close(self) -> None:
        for relay in self.relays:
            relay.close()


def _abort(writer: StreamWriter) -> None:
    with contextlib.suppress(Exception):
        writer.transport.abort()


class Line:
    """A serial line on which all ends hear each other, in whole frames, made of pseudo-terminals.

    `end` is the byte that ends a frame. With `split`, only the last end hears the others, and they hear it: a
    device whose wires lead to several gateways.
    """

    def __init__(self, directory: Path, ends: int, end: bytes = b"\0", split: bool = False) -> None:
        self._end, self._split = end, split
        self.paths = [directory / f"line{number}" for number in range(ends)]
        self._masters: list[int] = []
        self._slaves: list[int] = []
        self._rest = [b""] * ends
        self._waiting: list[deque[tuple[float, bytes]]] = [deque() for _ in range(ends)]
        for path in self.paths:
            master, slave = pty.openpty()
            tty.setraw(master)
            tty.setraw(slave)
            os.set_blocking(master, False)
            path.symlink_to(os.ttyname(slave))
            self._masters.append(master)
            self._slaves.append(slave)  # kept open, so that the death of an end does not unplug the line

    def open(self) -> None:
        loop = asyncio.get_running_loop()
        for number, master in enumerate(self._masters):
            loop.add_reader(master, self._on_readable, number)

    def _on_readable(self, number: int) -> None:
        with contextlib.suppress(OSError):
            data = self._rest[number] + os.read(self._masters[number], 65536)
            whole, end, self._rest[number] = data.rpartition(self._end)
            for other in self._hearers(number) if end else ():
                self._waiting[other].append((time.monotonic(), whole + end))
                self._write(other)

    def _hearers(self, number: int) -> list[int]:
        last = len(self._masters) - 1
        if self._split and number != last:
            return [last]
        return [other for other in range(len(self._masters)) if other != number]

    def _write(self, number: int) -> None:
        """Write waiting data. An end that does not read it within 0.5 s loses it, as in an overrun."""
        waiting, master = self._waiting[number], self._masters[number]
        asyncio.get_running_loop().remove_writer(master)
        while waiting:
            since_s, data = waiting.popleft()
            if time.monotonic() - since_s > _OVERRUN_S:
                continue
            try:
                count = os.write(master, data)
            except BlockingIOError:
                count = 0
            if count < len(data):
                waiting.appendleft((since_s, data[count:]))
                asyncio.get_running_loop().add_writer(master, self._write, number)
                return

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for master in self._masters:
            loop.remove_reader(master)
            loop.remove_writer(master)
        for fd in (*self._masters, *self._slaves):
            os.close(fd)
