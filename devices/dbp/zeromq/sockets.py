"""A ZeroMQ socket on an asyncio loop: it gets messages in batches, and sends without waiting."""

import logging
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from time import thread_time
from typing import Final, Literal, NamedTuple

from bus.ledger import Stats
from bus.serving import limits as serving
from bus.serving.connection import Connection
from bus.serving.listener import Address, Listener
from bus.serving.rejections import Rejections
from bus.serving.turns import UNIT_S, Job, Turns
from bus.transports.binding import Binding
from bus.transports.sockets import CLOSED_HERE
from devices.dbp.zeromq import zmtp
from devices.dbp.zeromq.dialing import Dialer
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.patterns import PATTERNS, Publisher, Subscriber
from devices.dbp.zeromq.zmtp import Cutter, Hello, Ping, Ready, Said

Kind = Literal["router", "dealer", "pub", "xpub", "sub"]
Watcher = Callable[[Literal["in", "out"], Sequence[bytes], str], object]
"""Called with the direction of each message, its frames, and the host of its sender, "" for our own."""
GONE: Final = "gone before its turn"
BROKEN_OFF: Final = "another mechanism or type of socket?"
"""Said of a peer that begins a handshake and ends it: so does libzmq, silently, where these do not fit."""
log = logging.getLogger("buscoupler.zeromq")


class Message(NamedTuple):
    """A received message. At a router, the first of `frames` is the identity of the peer.

    `host` is the address of the peer; "" for a topic that an `xpub` gets because a peer left.
    """

    frames: list[bytes]
    host: str


class Socket:
    """A socket. `hears(messages)` is called with each batch of messages, in order; it must not raise.

    `lost(peer)` is called with the identity of a peer when it is gone, and before another can come in its
    place; the identity is b"" unless a router gave it, or the peer chose one.
    `stats` is the ledger of sent, dropped, received and refused messages; several sockets may share one.
    `name` is its name in the log. `misfit` says what was wrong with the messages of the last peer that was
    disconnected for them; "" if none was.
    With `turns`, which its owner opens and closes, messages come one at a time, and hosts take turns by the
    processor time that `hears` needs for them.
    """

    def __init__(
        self,
        kind: Kind,
        hears: Callable[[list[Message]], None],
        limits: Limits | None = None,
        name: str = "ZeroMQ",
        lost: Callable[[bytes], object] = lambda _: None,
        stats: Stats | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.stats = Stats() if stats is None else stats
        self.misfit = ""
        self._hears, self._limits, self._lost, self._turns = hears, limits or Limits(), lost, turns
        self._pattern = PATTERNS[kind](self._limits, self.stats)
        self._hello = zmtp.GREETING + zmtp.ready(self._pattern.kind)
        self._dialers: list[Dialer] = []
        self._dialled: set[Connection] = set()
        self._reject = Rejections(name, self.stats.rejected, log)
        self._serving = _serving(self._limits)
        self._listener = Listener(
            self._serving,
            self._cutter,
            self._on_said,
            self._on_gone,
            self._reject,
            self.stats,
            half="half a message",
            answer=zmtp.refusal,
        )
        self._is_open = False
        self._watcher: Watcher | None = None

    @property
    def received(self) -> int:
        """The number of received messages."""
        return self.stats.received

    @property
    def sent(self) -> int:
        """The number of messages that were sent or wait to be sent."""
        return self.stats.offered - self.dropped

    @property
    def dropped(self) -> int:
        """The number of messages that a peer did not get: its queue was full, or it is gone or unknown."""
        return sum(self.stats.dropped.values())

    @property
    def rejected(self) -> Mapping[str, int]:
        """The counts of refused messages of peers, by reason."""
        return self.stats.rejected

    @property
    def peers(self) -> int:
        """The number of peers whose handshake is complete."""
        return len(self._pattern.peers)

    @property
    def fault(self) -> str:
        """The reason for which a dialled peer is not there; "" if none is known, or a peer is."""
        return "" if self.peers else next((one.fault for one in self._dialers if one.fault), "")

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to use an event loop. Call it before `bind` and `connect`."""
        self._loop, self._is_open = loop, True

    def bind(self, host: str, port: int, tries: int = 1) -> int:
        """Listen on the first free port of `tries` from `port` on, and return it. Port 0 is any free one.

        The hosts "" and "*" are every interface with IPv4. Raises `LinkError`.
        """
        return self.bind_at(host, port, tries)[1]

    def bind_at(self, host: str, port: int, tries: int = 1) -> Address:
        """Listen as `bind` does, and return the numeric address with the port."""
        tries = max(1, min(tries, (1 << 16) - port))
        return self._listener.open(self._loop, ("" if host == "*" else host, port), tries=tries)

    def await_address(self, host: str, port: int, on_bound: Callable[[Address], object]) -> None:
        """Listen at a port as `bind` does, also if the address is not there yet: then go on trying.

        `on_bound` gets the address with its port, at once or later. Raises `LinkError` otherwise.
        """
        self._listener.await_address(self._loop, ("" if host == "*" else host, port), on_bound)

    @property
    def bindings(self) -> list[Binding[Address]]:
        """The addresses of `await_address`, as a status shows them."""
        return list(self._listener.bindings.values())

    def connect(self, host: str, port: int) -> None:
        """Connect as soon as a peer listens there, and again whenever the connection ends."""
        dialer = Dialer(host, port, self._limits, self._dial)
        self._dialers.append(dialer)
        dialer.open(self._loop)

    def _dial(self, sock: socket.socket, name: str) -> Connection:
        connection = Connection(
            self._loop, sock, name, self._cutter(), self._on_said, self._on_gone, self.stats, self._serving
        )
        self._dialled.add(connection)
        connection.say(self._hello)
        return connection

    def _cutter(self) -> Cutter:
        limits = self._limits
        return Cutter(zmtp.FITS[self._pattern.kind], limits.message_bytes, limits.frames)

    def subscribe(self, topic: bytes) -> None:
        """Subscribe to messages that begin with `topic`. For a `sub` only."""
        assert isinstance(self._pattern, Subscriber)
        self._pattern.want(topic, True)

    def unsubscribe(self, topic: bytes) -> None:
        """Undo one `subscribe` of this topic. For a `sub` only."""
        assert isinstance(self._pattern, Subscriber)
        self._pattern.want(topic, False)

    def send(self, frames: Sequence[bytes]) -> bool:
        """Send a message. Return False, and count it, if a queue is full or no such peer is connected.

        At a router, the first frame is the identity of the peer.
        """
        if self._watcher is not None:
            self._watcher("out", frames, "")
        return self._pattern.send(frames) if self._is_open else self._pattern.lose("closed")

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` with every message, before it is received or sent."""
        self._watcher = watcher

    def unwatch(self) -> None:
        """Stop calling the watcher. Idempotent."""
        self._watcher = None

    def _on_said(self, connection: Connection, said: list[Said]) -> None:
        messages: list[Message] = []
        pings = [one for one in said if isinstance(one, Ping)]
        for one in said:
            if connection.closed:
                break
            self._take(connection, one, messages)
        if pings and not connection.closed:  # of many at once the last is answered
            connection.say(zmtp.pong(pings[-1].context))
        if self._turns is None or not messages:
            self._tell(messages)
        elif not self._turns.put(connection, connection.host, self._told(connection, messages)):
            self._reject("too much work", connection.host, len(messages))
        elif self._turns.waits(connection):
            connection.pause()  # what comes next waits there

    def _take(self, connection: Connection, said: Said, messages: list[Message]) -> None:
        match said:
            case Hello():
                if connection not in self._dialled:
                    connection.say(self._hello)
            case Ready(identity):
                self._enter(connection, identity)
            case Ping():
                return
            case frames:
                heard, refused = self._pattern.hear(connection, frames)
                if refused:
                    self._reject(refused, connection.host)
                elif heard is not None:
                    messages.append(Message(heard, _plain(connection.host)))

    def _enter(self, connection: Connection, identity: bytes) -> None:
        connection.met()
        refused = self._pattern.enter(connection, identity)
        if refused:
            self._reject(refused, connection.host)
            connection.close(refused)

    def _on_gone(self, connection: Connection) -> None:
        peer = self._pattern.peers.get(connection)
        self._dialled.discard(connection)
        if peer is not None:
            self.misfit = connection.decoder.fault or self.misfit
        elif self._is_open and _broke_off(connection):
            self._reject(BROKEN_OFF, connection.host, 1, connection.fault)
        self._tell([Message(frames, "") for frames in self._pattern.leave(connection)])
        if peer is not None and self._is_open:
            self._lost(peer.name)

    def _told(self, connection: Connection, messages: list[Message]) -> Job:
        try:
            for number, message in enumerate(messages):
                if connection.closed:  # the owner has been told that this peer is gone
                    return self._reject(GONE, connection.host, len(messages) - number)
                began_s = thread_time()
                self._tell([message])
                yield 1 + int((thread_time() - began_s) / UNIT_S)
        finally:
            connection.resume()

    def _tell(self, messages: list[Message]) -> None:
        is_deaf = type(self._pattern) is Publisher
        if messages and self._is_open and not is_deaf:
            self.stats.received += len(messages)
            if self._watcher is not None:
                for message in messages:
                    self._watcher("in", message.frames, message.host)
            self._hears(messages)

    def close(self) -> None:
        """Close all connections. Queued messages are dropped and counted. Idempotent."""
        self._is_open = False
        self._pattern.end()
        for dialer in self._dialers:
            dialer.close()
        for connection in list(self._dialled):
            connection.close(CLOSED_HERE)
        self._dialers.clear()
        self._listener.close()


def _broke_off(connection: Connection) -> bool:
    """Tell whether a peer has begun a handshake, and neither ended it nor been refused for what it said."""
    decoder = connection.decoder
    return not connection.greeted and connection.objects > 0 and not (decoder.fault or decoder.waiting)


def _serving(limits: Limits) -> serving.Limits:
    return serving.Limits(
        idle_s=limits.handshake_s,
        stalled_s=limits.stalled_s,
        queue_bytes=limits.queue_bytes,
        object_bytes=limits.message_bytes + zmtp.COMMAND_BYTES,  # the cutter has the closer bounds
        connections=limits.connections,
        read_bytes=limits.read_bytes,
    )


def _plain(host: str) -> str:
    """Return an address without the prefix that a socket of both families gives to IPv4 ones."""
    return host.removeprefix("::ffff:")
