"""A CAN bus between processes, without a kernel that has CAN: packets of `can_frame` on sockets in a folder.

`Wire` carries every packet to all others who have joined, in one order. Who sends one has it at once too,
with the mark of the driver, as the kernel's loopback does it.
`python -m tests.rigs.can_wire DIRECTORY ARGUMENT...` runs `buscoupler ARGUMENT...` with channels that are
wires of the directory in place of SocketCAN; the rest is the real program.
"""

import contextlib
import socket
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.rigs.can_packets import MARK, MARKED, install, roomy

_BUFFER_BYTES = 1 << 26  # some 3 s of 20,000 frames/s, of which each takes a kilobyte of the kernel's memory
_RECEIVE_BYTES = 256
_TURN = 256


class Wire:
    """One bus. `hear(raw)` is called for each packet of a process; `lost` counts those that found no room."""

    def __init__(self, path: Path, loop: AbstractEventLoop, hear: Callable[[bytes], None]) -> None:
        self._loop, self._hear = loop, hear
        self.lost = 0
        self._members: set[socket.socket] = set()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._door.bind(str(path))
        self._door.listen(16)
        self._door.setblocking(False)
        loop.add_reader(self._door, self._enter)

    def __len__(self) -> int:
        return len(self._members)

    def _enter(self) -> None:
        visitor, _ = self._door.accept()
        with visitor:
            visitor.setblocking(True)  # it writes at once
            _, (number, *_), _, _ = socket.recv_fds(visitor, 1, 1)
        member = roomy(socket.socket(fileno=number), _BUFFER_BYTES)
        self._members.add(member)
        self._loop.add_reader(member, self._take, member)

    def _take(self, member: socket.socket) -> None:
        for _ in range(_TURN):
            try:
                raw = member.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                return
            except OSError:
                raw = b""
            if not raw:
                self._loop.remove_reader(member)
                self._members.discard(member)
                return member.close()
            self.say(raw, member)
            self._hear(raw)

    def say(self, raw: bytes, sender: socket.socket | None = None) -> None:
        """Put a packet on the wire."""
        for member in self._members:
            if member is not sender:
                try:
                    member.send(raw)
                except BlockingIOError:
                    self.lost += 1
                except OSError:
                    continue

    def close(self) -> None:
        for sock in (self._door, *self._members):
            self._loop.remove_reader(sock)
            sock.close()


class _Socket(socket.socket):
    """A raw CAN socket, as far as the link uses it: an end of a pair, whose other end the wire has, too."""

    def __init__(self, path: Path) -> None:
        ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(fileno=ours.detach())
        for sock in (self, self._theirs):
            roomy(sock, _BUFFER_BYTES)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as visitor:
            visitor.connect(str(path))
            socket.send_fds(visitor, [b"."], [self._theirs.fileno()])

    def send(self, raw: Any, flags: int = 0) -> int:
        """Send a packet, and have it back with the mark."""
        size = super().send(raw, flags)
        marked = bytearray(raw)
        marked[MARKED] |= MARK
        self._theirs.send(marked)
        return size

    def close(self) -> None:
        self._theirs.close()
        super().close()


class Bus:
    """python-can's SocketcanBus, as far as the link uses it."""

    def __init__(self, directory: Path, channel: str) -> None:
        self.channel, self.socket = channel, _Socket(directory / channel)

    def shutdown(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()


def main(directory: str, *arguments: str) -> int:
    from appliance.commandline.cli import main as program

    def bus(channel: str = "", **_: Any) -> Any:
        return Bus(Path(directory), channel)

    install(bus)
    return program(list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
