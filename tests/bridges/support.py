"""Fakes and helpers of the bridge tests."""

import os
import pty
import random
import tty
from collections.abc import Callable
from operator import mul
from pathlib import Path

from bridges.bridge import Bridge
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import pack

FRAME = bytes.fromhex("0202000511223344556677886" + "8656c6c6f")
ENVELOPE = bytes.fromhex("e108f011a1b2c3d400000007")
MESSAGE = ENVELOPE + FRAME
SIZES = (4, 5, 7, 8, 11, 12, 13, 20, 59, 60, 61, 62, 63, 64, 65, 120, 124, 200, 255, 508, 1024, 2048, 3072)


def balanced(bridge: Bridge) -> bool:
    """Tell whether the ledgers of a bridge balance, those of its ports and those inside."""
    ports = [port for side in bridge.sides for port in side.ports]
    return all(
        port.stats.balance() == 0
        and port.inner.stats.offered == port.stats.sent
        and port.inner.stats.received == port.stats.received + sum(port.stats.rejected.values())
        for port in ports
    )


class RecordingPipe(Pipe):
    """A pipe that keeps all messages it is sent."""

    def __init__(self, name: str = "recorder", link: str = "") -> None:
        self.name, self.link = name, link
        self.stats = Stats()
        self.messages: list[bytes] = []
        self.on_send: Callable[[], object] = lambda: None

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.messages += payloads(batch)
        self.on_send()

    def close(self) -> None:
        pass


def recorder(hub: Hub, name: str = "recorder") -> RecordingPipe:
    """Return a recording pipe on `hub`."""
    pipe = RecordingPipe(name)
    hub.attach(pipe)
    return pipe


_ODD = bytes(number % 2 for number in range(256))


def frame(size: int, seed: int = 0) -> bytes:
    """Return a valid frame of exactly `size` bytes (4 to 3072), with zeros and noise in its data."""
    count = max(0, -(-(size - 4 - 2048) // 4))
    source = random.Random(seed * 5000 + size)
    noise, kept = (source.randbytes(size - 4 - 4 * count) for _ in range(2))
    data = bytes(map(mul, noise, kept.translate(_ODD)))
    return pack(1, [source.randrange(2**32) for _ in range(count)], data)


def say(hub: Hub, pipe: Pipe | None, *messages: bytes) -> None:
    hub.publish(from_payloads(messages), pipe)


class PtyPair:
    """A pseudo-terminal: the test has the master, and `path` leads to the slave like a device's name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plug()

    def plug(self) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(self.master)
        tty.setraw(slave)
        os.set_blocking(self.master, False)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(slave))
        self._slave = slave

    def let_go(self) -> None:
        """Close our descriptor of the slave, so that only the link has it."""
        os.close(self._slave)
        self._slave = -1

    def unplug(self) -> None:
        if self._slave >= 0:
            self.let_go()
        os.close(self.master)
        self.master = -1

    def read(self) -> bytes:
        try:
            return os.read(self.master, 65536)
        except (BlockingIOError, OSError):
            return b""

    def close(self) -> None:
        for fd in (self.master, self._slave):
            if fd >= 0:
                os.close(fd)
