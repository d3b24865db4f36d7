"""The transport that NNG carries for us, as a link: inproc, which joins the programs of one process.

NNG never has a port of ours (docs/decisions.md). One raw NNG socket, and one pipe of our hub for each of its
peers. A raw BUS socket cannot send to one peer: it sends to all, or to all but one. So the first pipe that
the hub offers a batch to carries it for its siblings, and these only count it; when the batch came from one
of them, NNG leaves that one out. A batch for a single pipe of a listening link therefore reaches all peers of
that link.
"""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

from bus.errors import LinkError
from bus.hub import Hub, Link, Pipe, State
from bus.ledger import Stats
from bus.transports.nng_socket import NOBODY, Limits, NngSocket
from bus.vacancy import NO_PEER
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, from_payloads

WAKE_MESSAGES_MAX = 512
WAKE_BYTES_MAX = 1 << 20
DEPARTED_MAX = 256


class NngPipe(Pipe):
    """One peer of an `NngLink`. `sent` means handed to NNG, which drops silently when a peer is slow."""

    __slots__ = ("_link", "link", "name", "peer", "stats")

    def __init__(self, link: "NngLink", peer: int, address: str) -> None:
        self.name, self.link = f"{link.name}#{address}", link.name
        self.peer = peer
        self.stats = Stats()
        self._link = link

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self._link.carry(self, batch)

    def close(self) -> None:
        self._link.release(self)


@dataclass(slots=True)
class _Relay:
    """The batches offered to our pipes while a batch of our own peer `origin` goes round the hub.

    The hub may offer the batch itself, a changed copy of it (also not for `origin`), or somebody's prompt
    reply (for `origin` too). Only at the end is it known which; so all but the first wait.
    """

    origin: NngPipe
    batch: Batch
    later: list[Batch] = field(default_factory=list)
    for_origin: list[Batch] = field(default_factory=list)


class NngLink:
    """A link for `inproc://`. Raises `LinkError` for another address.

    `mode` is "listen" or "dial"; dialing repeats with NNG's randomised back-off. `limits` are the fields of
    `Limits`. NNG does not tell why a dial failed, nor what waits: `queue_bytes` is the most that it may hold.
    """

    condition = ""

    def __init__(
        self,
        url: str,
        mode: Literal["listen", "dial"] = "listen",
        **limits: Any,
    ) -> None:
        if mode not in ("listen", "dial"):
            raise ValueError(f"mode {mode!r}: it must be listen or dial")
        if not url.startswith("inproc://"):
            raise LinkError(f"{url}: NNG carries inproc:// only")
        self.url, self.mode, self.name = url, mode, url
        self.limits = Limits(**limits)
        self.queue_bytes = self.limits.queue_messages * self.limits.message_bytes
        self.fault = ""
        self.losses = 0
        self._socket: NngSocket | None = None
        self._pipes: dict[int, NngPipe] = {}
        self._departed: deque[int] = deque(maxlen=DEPARTED_MAX)
        self._relay: _Relay | None = None

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to listen or dial. Raises `LinkError` for a bad address, and for one that is taken."""
        self._hub, self._loop = hub, loop
        self._socket = socket = NngSocket(
            self.limits,
            raw=True,
            on_join=partial(self._on_loop, self._join),
            on_leave=partial(self._on_loop, self._leave),
        )
        try:
            if self.mode == "dial":
                socket.dial(self.url)
            else:
                self.url = socket.listen(self.url)
        except LinkError:
            self._socket = None
            socket.close()
            raise
        hub.enlist(self.name, NO_PEER)
        loop.add_reader(socket.recv_fd, self._drain)

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""
        for pipe in self._pipes.values():
            self._hub.detach(pipe)
            hub.attach(pipe)
        if self._socket is not None:
            self._hub.strike(self.name)
            hub.enlist(self.name, NO_PEER)
        self._hub = hub

    def revise(self, other: Link) -> bool:
        """Return whether the limits are the same: NNG applies others to new sockets only."""
        return isinstance(other, NngLink) and other.limits == self.limits

    @property
    def state(self) -> State:
        if self._socket is None:
            return "closed"
        if self.mode == "listen" or self._pipes:
            return "up"
        return "waiting" if self.losses else "opening"

    @property
    def pipes(self) -> tuple[NngPipe, ...]:
        """The live peers."""
        return tuple(self._pipes.values())

    def close(self) -> None:
        """Stop the link and disconnect all peers at once. Idempotent."""
        socket, self._socket = self._socket, None
        if socket is None:
            return
        self._loop.remove_reader(socket.recv_fd)
        socket.close()
        for peer in tuple(self._pipes):
            self._leave(peer)
        self._hub.strike(self.name)

    def carry(self, pipe: NngPipe, batch: Batch) -> None:
        """Count a batch as offered to `pipe` and send it once for all pipes of this link."""
        stats, relay = pipe.stats, self._relay
        if self._socket is None or pipe.peer not in self._pipes:
            stats.drop("closed", batch.count)
            return
        stats.sent += batch.count
        stats.sent_bytes += len(batch.data)
        if relay is None:
            if pipe is self._first(None):
                self._transmit(batch, None)
        elif pipe is relay.origin:
            relay.for_origin.append(_own(batch))
        elif pipe is self._first(relay.origin):
            if batch is relay.batch:
                self._transmit(batch, pipe_out=relay.origin)
            else:
                relay.later.append(_own(batch))

    def release(self, pipe: NngPipe) -> None:
        """Close one peer's connection and forget it. Idempotent."""
        if self._socket is not None and pipe.peer in self._pipes:
            self._socket.drop_peer(pipe.peer)
            self._leave(pipe.peer)

    def _first(self, other_than: NngPipe | None) -> NngPipe | None:
        return next((pipe for pipe in self._pipes.values() if pipe is not other_than), None)

    def _transmit(self, batch: Batch, pipe_out: NngPipe | None) -> None:
        assert self._socket is not None
        refused = _send_all(self._socket, batch, pipe_out.peer if pipe_out else NOBODY)
        for pipe in self._pipes.values() if refused else ():
            if pipe is not pipe_out:
                pipe.stats.sent -= refused
                pipe.stats.drop("refused", refused)

    def _drain(self) -> None:
        """Publish waiting messages, a bounded number, one batch for each run from one peer.

        Runs on the loop.
        """
        if self._socket is None:
            return
        for peer, run in groupby(_take(self._socket), key=itemgetter(1)):
            if self._socket is not None:
                pipe = self._pipe_of(peer)
                self._publish(pipe, from_payloads(body for body, _ in run))
                if peer not in self._pipes:
                    self._hub.detach(pipe)

    def _publish(self, origin: NngPipe, batch: Batch) -> None:
        self._relay = relay = _Relay(origin, batch)
        try:
            self._hub.publish(batch, origin)
        finally:
            self._relay = None
        if relay.later or relay.for_origin:
            self._send_later(relay)

    def _send_later(self, relay: _Relay) -> None:
        """Send messages that are for `origin` too to all peers, and the others to all but `origin`."""
        to_all = [batch.data for batch in relay.for_origin]
        if self._first(relay.origin) is None:
            relay.later = relay.for_origin
        for batch in relay.later if self._socket else ():
            self._transmit(batch, None if batch.data in to_all else relay.origin)

    def _pipe_of(self, peer: int) -> NngPipe:
        """Return the pipe of a message's sender; None if the sender has gone.

        A message may be here before its sender's arrival is, and after its departure; then nothing must make
        a pipe of the departed sender again.
        """
        if peer not in self._pipes:
            if peer in self._departed:
                pipe = NngPipe(self, peer, "departed")
                self._hub.attach(pipe)  # for this batch only: it counts as one that came in here
                return pipe
            self._join(peer, self._socket.peers.get(peer, str(peer)) if self._socket else "")
        return self._pipes[peer]

    def _on_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function on the loop; NNG calls this on threads of its own."""
        with suppress(RuntimeError):  # the loop was closed first: nobody is left to tell
            self._loop.call_soon_threadsafe(function, *arguments)

    def _join(self, peer: int, address: str) -> None:
        if self._socket is not None and peer not in self._pipes and peer not in self._departed:
            self._pipes[peer] = pipe = NngPipe(self, peer, address)
            self._hub.attach(pipe)

    def _leave(self, peer: int) -> None:
        pipe = self._pipes.pop(peer, None)
        if pipe is not None:
            self._departed.append(peer)
            self._hub.detach(pipe)
            if self._socket is not None:
                self.losses += 1
                self.fault = self.fault if self.mode == "listen" else "the peer is gone"


def _own(batch: Batch) -> Batch:
    return Batch(batch.keep(), batch.count)


def _take(socket: NngSocket) -> list[tuple[bytes, int]]:
    taken: list[tuple[bytes, int]] = []
    size = 0
    with suppress(LinkError):
        while len(taken) < WAKE_MESSAGES_MAX and size < WAKE_BYTES_MAX and (message := socket.receive()):
            taken.append(message)
            size += len(message[0])
    return taken


def _send_all(socket: NngSocket, batch: Batch, exclude: int) -> int:
    """Hand each message of `batch` to NNG; return how many it refused (out of memory, closing)."""
    view, position, refused = memoryview(batch.data), 0, 0
    for _ in range(batch.count):
        start = position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(view, position)[0]
        try:
            socket.send(view[start:position], exclude)
        except LinkError:
            refused += 1
    return refused
