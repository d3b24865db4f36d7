"""Helpers of all tests: a pipe that listens, hand-made SP peers, and waits for a condition."""

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from weakref import finalize

from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import split
from bus.wire.sp import HANDSHAKE
from tests.helpers.patience import Patience

_LOOK_S: Final = 0.001


class Ear(Pipe):
    """A pipe that keeps all messages that it is sent."""

    def __init__(self, hub: Hub) -> None:
        self.name = "ear"
        self.stats = Stats()
        self.heard: list[bytes] = []
        self.hub = hub
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.heard += payloads(batch)

    def say(self, *bodies: bytes) -> None:
        self.hub.publish(from_payloads(bodies), self)

    def close(self) -> None:
        self.hub.detach(self)


class Slow(Ear):
    """A pipe that queues what it is offered, until `let`."""

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.queued += batch.count

    def let(self) -> None:
        self.stats.sent, self.stats.queued = self.stats.offered, 0


class BareEar(Ear):
    """An `Ear` that keeps frames without their envelopes."""

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.heard += [found[1] for message in payloads(batch) if (found := split(message))]


class SpPeer:
    """An SP peer on a plain blocking socket, so that tests control every byte. Use it in a thread."""

    def __init__(self, url: str, greet: bytes = HANDSHAKE) -> None:
        scheme, _, rest = url.partition("://")
        if scheme == "ipc":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(rest)
        else:
            host, _, port = rest.rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        finalize(self, self.socket.close)  # a test that fails here must not make another one fail
        self.lead = b"\x01" if scheme == "ipc" else b""
        self.socket.settimeout(20)
        self.socket.sendall(greet)

    def greeting(self) -> bytes:
        return self.exactly(8)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def send(self, *bodies: bytes) -> None:
        self.socket.sendall(b"".join(self.lead + len(b).to_bytes(8, "big") + b for b in bodies))

    def receive(self) -> bytes:
        head = self.exactly(8 + len(self.lead))
        assert head[: len(self.lead)] == self.lead
        return self.exactly(int.from_bytes(head[-8:], "big"))

    def rest(self) -> bytes:
        """Return what comes until the other side closes."""
        data = b""
        with suppress(ConnectionResetError):
            while more := self.socket.recv(65536):
                data += more
        return data

    def at_end(self) -> bool:
        """Read to the end. Return whether the other side closed: with an end of stream or a reset."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            return True
        return True

    def close(self) -> None:
        self.socket.close()


async def until(
    condition: Callable[[], object], limit_s: float = 30.0, what: str = "it", *, passes: bool = False
) -> None:
    """Let the loop run until `condition` holds.

    Raises `TimeoutError`, which names `what` did not come, after `limit_s`: far longer than a good run needs.
    Time in which nothing here had a turn, on a busy machine, is none of it.
    What lasts is looked at less often: a thousand looks a second cost more than much that is waited for.
    What `passes` by itself, in this loop, is looked at in each of its turns.
    """
    loop = asyncio.get_running_loop()
    patience, begun_s = Patience(limit_s), loop.time()
    asked_s = begun_s
    while not condition():
        now_s = loop.time()
        waited_s, passed_s = now_s - begun_s, now_s - asked_s
        if passed_s > patience.next_s:
            asked_s = now_s
            if patience.is_over(passed_s):
                raise TimeoutError(f"{what} did not come within {limit_s:g} s")
        await asyncio.sleep(0 if passes else min(max(_LOOK_S, waited_s / 20), 10 * _LOOK_S))


def wait(condition: Callable[[], object], limit_s: float = 30.0, what: str = "it") -> None:
    """Block until `condition` holds, as `until` does without a loop."""
    patience, asked_s = Patience(limit_s), time.monotonic()
    while not condition():
        passed_s = time.monotonic() - asked_s
        if passed_s > patience.next_s:
            asked_s += passed_s
            if patience.is_over(passed_s):
                raise TimeoutError(f"{what} did not come within {limit_s:g} s")
        time.sleep(0.005)
