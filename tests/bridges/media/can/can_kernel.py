"""A stand-in for the kernel's CAN sockets: raw frames, confirmations, a driver's queue, error frames."""

import errno
import os
import socket
from asyncio import get_running_loop
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any

import pytest

from bridges.items import ERROR, EXTENDED, FD
from bridges.media.can.codec import SOT, Reassembler
from bridges.media.can.link import CanLink
from bridges.media.can.socketcan import unpack_frame
from bridges.media.can.state import BUS_OFF, RESTARTED
from bus.hub import Hub
from tests.helpers.links import can_link

_NOTE = Struct("=BIIQ")  # 1 for a frame, 2 for an error; flags or errno; frames dropped so far; time in ns
_TIMESTAMPNS, _RXQ_OVFL = 35, 40
_TIME = Struct("@ll")


class Kernel:
    """A CAN interface. While `running` is False, sent frames stay in the driver until `transmit`."""

    def __init__(self, net: Path) -> None:
        self._carrier = net / "fake0" / "carrier"
        self._carrier.parent.mkdir()
        self.carrier(True)
        self.mtu(72)
        self.sockets: list[Socket] = []
        self.driver: deque[tuple[Socket, bytes]] = deque()
        self.running = True
        self.txqueuelen = 1000
        self.down = 0  # the errno that opening and binding raise
        self.gone = False
        self.opened = 0
        self.restart_result = errno.EBUSY
        self.asked: list[str] = []
        self.wire: list[bytes] = []
        self.messages: list[bytes] = []
        self.stamp_ns = 0  # when frames come; 0: the kernel does not tell
        self._listener, self._now = Reassembler(), 0.0

    def open(self, channel: str, filters: object = None) -> "Socket":
        """Open a socket, in place of `raw.bound`."""
        if self.gone:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        self.opened += 1
        return Socket(self)

    def send(self, sender: "Socket", raw: bytes) -> None:
        if len(raw) > self.mtu_bytes:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if len(self.driver) >= self.txqueuelen:
            raise OSError(errno.ENOBUFS, "No buffer space available")
        self.driver.append((sender, raw))
        if self.running:
            self.transmit()

    def transmit(self, count: int = 1 << 20) -> None:
        """Send the driver's frames: all sockets hear them, the sender as a confirmation."""
        for _ in range(min(count, len(self.driver))):
            sender, raw = self.driver.popleft()
            self.put(raw, sender)

    def put(self, raw: bytes, sender: "Socket | None" = None) -> None:
        """Put a frame on the wire; a foreign socket is another program of this machine."""
        self.wire.append(raw)
        frame = unpack_frame(raw)
        assert frame is not None
        if not frame[1] or not frame[0] & EXTENDED:
            return self._hear(raw, sender)
        # Without this pause, a transfer could be taken for the one 32 before it.
        self._now += 3.0 if frame[1][-1] & SOT else 0.0
        found = self._listener.feed(self._now, frame[0], frame[1])
        if found is not None:
            self.messages.append(found)
        return self._hear(raw, sender)

    def _hear(self, raw: bytes, sender: "Socket | None") -> None:
        for sock in list(self.sockets):
            local = 0 if sender is None else socket.MSG_DONTROUTE
            sock.deliver(raw, local | (socket.MSG_CONFIRM if sock is sender else 0))

    def error_frame(self, classes: int, *data: int) -> None:
        raw = (classes | ERROR).to_bytes(4, "little") + b"\x08\0\0\0" + bytes(data).ljust(8, b"\0")
        for sock in list(self.sockets):
            sock.deliver(raw, 0)

    def mtu(self, size: int) -> None:
        """Carry frames of at most `size` bytes: 16 is a classic interface, 72 one of CAN FD."""
        self.mtu_bytes = size
        (self._carrier.parent / "mtu").write_text(f"{size}\n")

    def carrier(self, there: bool) -> None:
        self._carrier.write_text(f"{there:d}\n")

    def bus_off(self) -> None:
        """Go bus-off, as can_bus_off() does; the queue of a device without carrier is emptied."""
        self.carrier(False)
        self.driver.clear()
        self.error_frame(BUS_OFF)

    def restart(self) -> None:
        self.carrier(True)
        self.error_frame(RESTARTED)

    def asked_to_restart(self, interface: str) -> int:
        """Restart, in place of the netlink request; runs in a thread."""
        self.asked.append(interface)
        if not self.restart_result:
            self.restart()
        return self.restart_result

    def fail(self, number: int) -> None:
        """Give every socket the errno of an interface that goes down or is removed."""
        for sock in list(self.sockets):
            sock.note(2, number, b"")


class Socket:
    """A raw CAN socket, as far as the link uses it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._theirs.setblocking(False)
        self.options: dict[tuple[int, int], int] = {}
        self.dropped = 0
        self.send_faults: deque[int] = deque()
        kernel.sockets.append(self)

    def note(self, kind: int, number: int, raw: bytes) -> None:
        self._theirs.send(_NOTE.pack(kind, number, self.dropped, self._kernel.stamp_ns) + raw)

    def deliver(self, raw: bytes, flags: int) -> None:
        self.note(1, flags, raw)

    def recvmsg(self, size: int, room: int, flags: int) -> tuple[bytes, list[Any], int, None]:
        raw = self._ours.recv(4096, flags)
        kind, number, dropped, stamp_ns = _NOTE.unpack_from(raw)
        if kind == 2:
            raise OSError(number, os.strerror(number))
        notes = [(socket.SOL_SOCKET, _RXQ_OVFL, dropped.to_bytes(4, "little"))] if dropped else []
        if stamp_ns and self.options.get((socket.SOL_SOCKET, _TIMESTAMPNS)):
            time_ = _TIME.pack(*divmod(stamp_ns, 1_000_000_000))
            notes.insert(0, (socket.SOL_SOCKET, _TIMESTAMPNS, time_))
        return raw[_NOTE.size :][:size], notes, number, None

    def send(self, raw: bytes, flags: int) -> int:
        if self.send_faults:
            number = self.send_faults.popleft()
            raise OSError(number, os.strerror(number))
        self._kernel.send(self, raw)
        return len(raw)

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self.options[level, option] = value

    def getsockopt(self, level: int, option: int) -> int:
        return self._kernel.down

    def fileno(self) -> int:
        return self._ours.fileno()

    def close(self) -> None:
        if self in self._kernel.sockets:
            self._kernel.sockets.remove(self)
            self._ours.close()
            self._theirs.close()


def standing_in(patch: pytest.MonkeyPatch, net: Path) -> Kernel:
    """Return a kernel in which links find the interface `fake0`; its files are below `net`."""
    made = Kernel(net)
    patch.setattr("bridges.media.can.raw.bound", made.open)
    patch.setattr("bridges.media.can.interfaces._NET", net)
    patch.setattr("bridges.media.can.pipe._STATE_S", 0.01)
    patch.setattr("bridges.media.can.restart._PURGE_S", 0.0)
    patch.setattr("bridges.media.can.restart.restart", made.asked_to_restart)
    return made


def formats(kernel: Kernel) -> set[str]:
    """Return the formats of the frames that were on the wire."""
    frames = (unpack_frame(raw) for raw in kernel.wire)
    return {"fd" if frame is not None and frame[2] & FD else "classic" for frame in frames}


@contextmanager
def link_on(hub: Hub, node: int = 5, **options: Any) -> Iterator[CanLink]:
    """Open a link of a hub on the stand-in, and look at its ledger at the end."""
    options = {"queue_bytes": 1 << 20, "age_ms": 60_000} | options
    link = can_link("socketcan", "fake0", node, retry_min_s=0.01, **options)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()
