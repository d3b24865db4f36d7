"""One TCP connection, perhaps secure, that carries many objects both ways, accepted or dialled."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from bus.ledger import Stats
from bus.serving.limits import Limits
from bus.serving.objects import MANY, Cutter, ObjectDecoder, Objects
from bus.text import after
from bus.transports.framing import Framing, Toil
from bus.transports.gathering import NoGathering
from bus.transports.on_the_way import on_the_way_bytes
from bus.transports.secure import SecureSocket
from bus.transports.sockets import far_host, tune
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.wire.batch import Batch

OnObjects = Callable[["Connection", list[Any]], None]
OnClosed = Callable[["Connection"], None]
OnReady = Callable[["Connection"], None]
Sign = Callable[[], bytes]
"""A function that makes a sign of life, sent to a peer that has been sent nothing else."""


class Connection:
    """Objects over a connected non-blocking socket, with a bounded queue out: a stream pipe with a memory.

    Over TLS nothing may be sent before it is `ready`; a handshake that takes longer than `idle_s` closes it.
    `greeted`: the handshake of its protocol is complete; then the other side may be silent for `silence_s`, 0
    being for ever. `heard_s` and `said_s` are when objects last came and went, on the loop's clock; `objects`
    counts those that came; `decoder` holds part of an object, or the fault of the stream. `stats` counts what
    goes out; it may be shared. `on_drained()` is called when nothing is queued any more, and `on_met()` when
    the handshake of the protocol is complete.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        sock: socket.socket | SecureSocket,
        name: str,
        cutter: Cutter,
        on_objects: OnObjects,
        on_closed: OnClosed,
        stats: Stats | None = None,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        on_drained: Callable[[], None] = lambda: None,
        on_met: Callable[[], None] = lambda: None,
    ) -> None:
        self.name, self.host = name, name.rpartition(":")[0]
        self.greeted = self.paused = False
        self.objects = 0
        self.silence_s = 0.0
        self.heard_s = self.said_s = self._looked_s = loop.time()
        self._quiet_s = 0.0
        self.decoder = ObjectDecoder(cutter, limits.object_bytes, limits.read_bytes)
        self._loop, self._socket, self._limits = loop, sock, limits
        self._on_objects, self._on_closed, self._on_met = on_objects, on_closed, on_met
        self._ready: list[OnReady] = []
        self._lost: list[OnClosed] = []
        self._ending = False
        tune(sock, limits.stalled_s)
        self._pipe = StreamPipe(
            sock,
            name,
            Framing(lambda _: self.decoder, toil=_toil),
            Bounds(limits.queue_bytes),
            Calls(self._on_batch, self._on_gone, self._on_ready, on_drained),
            stats=stats,
            gathering=NoGathering,
            host=self.host,
        )
        self.stats = self._pipe.stats
        self._pipe.start(loop, limits.idle_s)

    @property
    def ready(self) -> bool:
        """Whether the handshake of TLS is done; from the beginning where there is none."""
        return self._pipe.ready

    @property
    def proven(self) -> bool:
        """Whether the other side has shown a certificate that an authority of ours has signed."""
        return isinstance(self._socket, SecureSocket) and self._socket.proven

    @property
    def closed(self) -> bool:
        return self._pipe.closed

    @property
    def deaf(self) -> bool:
        """Whether nothing can be sent any more: the connection is closed, or is about to be."""
        return self._pipe.closed or self._pipe.gone

    @property
    def fault(self) -> str:
        """The reason why the connection was closed; "" if it was not, or from here without one."""
        return self._pipe.fault

    @property
    def words(self) -> str:
        """The fault, with what the other side said in place of TLS. For people: it is no reason to count."""
        return after(self.fault, self._socket.said if isinstance(self._socket, SecureSocket) else b"")

    @property
    def queued_bytes(self) -> int:
        return self._pipe.queued_bytes

    @property
    def on_the_way_bytes(self) -> int:
        """The bytes that the other machine has not acknowledged: a close may lose them, if anything comes."""
        return 0 if self.closed else on_the_way_bytes(self._socket.fileno())

    @property
    def own_host(self) -> str:
        """The address of this machine on the connection; "" once it is closed."""
        return "" if self.closed else str(self._socket.getsockname()[0])

    @property
    def own_address(self) -> str:
        """`HOST:PORT` of this machine on the connection; "" once it is closed."""
        return "" if self.closed else "{}:{}".format(*self._socket.getsockname())

    @property
    def far_host(self) -> str:
        """The address of the other machine on the connection; "" without one, and once it is closed."""
        return "" if self.closed else far_host(self._socket)

    def met(self, silence_s: float = 0.0) -> bool:
        """Note that the handshake is complete. Return whether this is the first time."""
        first, self.greeted, self.silence_s = not self.greeted, True, silence_s
        if first:
            self._on_met()
        return first

    def on_ready(self, callback: OnReady) -> None:
        """Call `callback(connection)` once, when the connection is ready; at once if it already is."""
        if self.ready:
            callback(self)
        else:
            self._ready.append(callback)

    def on_lost(self, callback: OnClosed) -> None:
        """Call `callback(connection)` once, when the connection is gone; at once if it already is."""
        if self.closed:
            callback(self)
        else:
            self._lost.append(callback)

    def revise(self, limits: Limits) -> None:
        """Use other limits from now on. What is queued stays queued."""
        self._limits = limits
        self._pipe.revise(limits.queue_bytes, limits.object_bytes)

    def read(self) -> None:
        """Read once, and hand on whole objects; do nothing while the connection is paused or not ready."""
        if self.ready and not self.closed and not self.paused:
            self._pipe.read()

    def pause(self) -> None:
        """Read nothing until `resume`: earlier objects are not done yet. Silence does not count meanwhile."""
        if not self.paused:
            self.paused = True
            self._pipe.pause()

    def resume(self) -> None:
        """Read again. Idempotent."""
        if self.paused:
            self.paused, self.heard_s = False, self._loop.time()
            self._pipe.resume()

    def _on_batch(self, batch: Objects, _: StreamPipe) -> None:
        self.heard_s = self._loop.time()
        self.objects += batch.count
        self._on_objects(self, batch.objects)

    def ended(self) -> bool:
        """Return whether the other side has already closed behind what it sent.

        Over TLS this is never known.
        """
        if isinstance(self._socket, SecureSocket):
            return False
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def has_room(self, size: int) -> bool:
        """Return whether `size` bytes more would be sent or queued, and not dropped."""
        return self._pipe.has_room(size)

    def say(self, data: bytes) -> None:
        """Send bytes that no ledger counts."""
        self.send(data, 0)

    def send(self, data: bytes, count: int = 1) -> bool:
        """Send `count` whole objects now or later, or drop and count them. Never blocks, never raises.

        Returns False once the connection is `deaf`.
        """
        self.said_s = self._loop.time()
        self._pipe.send(Batch(data, count))
        return not self.deaf

    def keep_alive(self, sign: Sign | None) -> None:
        """Close the connection of a peer that was silent for too long; send a sign of life if we were.

        Call it once a heartbeat.
        """
        limits, now_s = self._limits, self._loop.time()
        self._look(now_s)
        if not self.greeted:
            if self._quiet_s > limits.idle_s:
                self.close("idle")
        elif self.silence_s and self._quiet_s > max(self.silence_s, limits.heartbeat_s):
            self.close(f"silent for {self._quiet_s:.1f} s")
        elif sign is not None and now_s - self.said_s > limits.heartbeat_s / 2 and not self.queued_bytes:
            self.say(sign())

    def _look(self, now_s: float) -> None:
        """Add up the silence since the last look: at most a heartbeat.

        Where this process had no turn for longer, its peers may have had none, or what they said is not read.
        """
        if self.paused or self.heard_s >= self._looked_s:
            self._quiet_s = 0.0
        if not self.paused:
            self._quiet_s += min(now_s - max(self.heard_s, self._looked_s), self._limits.heartbeat_s)
        self._looked_s = now_s

    def close(self, why: str = "") -> None:
        """Disconnect; queued objects become counted drops. Idempotent."""
        self._pipe.close(why)

    def close_later(self, why: str) -> None:
        """Disconnect after a heartbeat: some clients come again at once, with the same mistake."""
        if not self._ending:
            self._ending = True
            self._loop.call_later(self._limits.heartbeat_s, self.close, why)

    def _on_ready(self, _: StreamPipe) -> None:
        self.heard_s = self._loop.time()
        ready, self._ready = self._ready, []
        for callback in ready:
            callback(self)

    def _on_gone(self, _: StreamPipe) -> None:
        self._on_closed(self)
        lost, self._lost = self._lost, []
        for callback in lost:
            callback(self)


def _toil(decoder: ObjectDecoder) -> Toil:
    return "busy" if 2 * decoder.count > MANY else ""
