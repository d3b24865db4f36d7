"""A CAN bus between processes, without a kernel that has CAN: packets of `can_frame` on sockets in a folder.

`Wire` carries every packet to all who have joined, in one order, and back to its sender with the mark of the
driver. `python -m tests.rigs.can_wire DIRECTORY ARGUMENT...` runs `buscoupler ARGUMENT...` with channels that
are wires of the directory in place of SocketCAN; the rest is the real program.
"""

import contextlib
import errno
import socket
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BUFFER_BYTES = 1 << 26  # some 3 s of 20,000 frames/s, of which each takes a kilobyte of the kernel's memory
_SNDBUFFORCE = 32  # asm-generic/socket.h; not in `socket`
_RECEIVE_BYTES = 256
_TURN = 256
_OWN, _OTHER = b"\x01", b"\x00"


def _packets(sock: socket.socket) -> socket.socket:
    for option in (_SNDBUFFORCE, socket.SO_SNDBUF):  # the first takes root
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            break
    sock.setblocking(False)
    return sock


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
        member = _packets(self._door.accept()[0])
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
            try:
                member.send((_OWN if member is sender else _OTHER) + raw)
            except BlockingIOError:
                self.lost += 1
            except OSError:
                continue

    def close(self) -> None:
        for sock in (self._door, *self._members):
            self._loop.remove_reader(sock)
            sock.close()


class _Socket:
    """A raw CAN socket, as far as the link uses it."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(str(path))
        _packets(self._socket)
        self.fileno, self.close = self._socket.fileno, self._socket.close

    def recvmsg(self, size: int, room: int, flags: int) -> tuple[bytes, list[Any], int, None]:
        raw = self._socket.recv(size + 1)
        if not raw:
            raise OSError(errno.ENETDOWN, "the wire has gone")
        return raw[1:], [], socket.MSG_CONFIRM if raw[:1] == _OWN else 0, None

    def send(self, raw: bytes, flags: int) -> int:
        return self._socket.send(raw)

    def setsockopt(self, level: int, option: int, value: int) -> None:
        pass

    def getsockopt(self, level: int, option: int) -> int:
        return 0


class Bus:
    """python-can's SocketcanBus, as far as the link uses it."""

    def __init__(self, directory: Path, channel: str) -> None:
        self.channel, self.socket = channel, _Socket(directory / channel)

    def shutdown(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()


def main(directory: str, *arguments: str) -> int:
    import can

    from appliance.commandline.cli import main as program

    def bus(channel: str = "", **_: Any) -> Any:
        return Bus(Path(directory), channel)

    vars(can)["Bus"] = bus
    return program(list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
