"""A TCP stream whose peers speak a protocol of their own."""

import socket
from asyncio import AbstractEventLoop, TimerHandle, get_running_loop
from collections.abc import Callable
from functools import cached_property, partial
from math import inf
from typing import Any

from bridges.media.device import cancel
from bridges.media.shed_pipe import FrontLink, ShedLink
from bridges.media.shedding import Shed
from bridges.media.spoken import BytePort, Conversation, SpokenLink, unix_s
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.port import SocketPort
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import LOOK_S, Translator, Wire, always
from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.ledger import Stats
from bus.transports.framing import Framing, Once
from bus.transports.stream import StreamPipe
from bus.transports.tcp import ListenLink
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.sp import SCRATCH_BYTES

_CONNECT_S = 5.0
_PEERS, _SILENCE_S = 1024, 30.0


def tcp_spoken(
    options: Tcp,
    protocol: Protocol,
    shed: Shed | None = None,
    may_act: Callable[[float], bool] = always,
    **retry: Any,
) -> Link:
    """Make the link for a stream's settings and a protocol: it dials one peer, or listens for many."""
    if options.mode == "dial":
        return TcpSpoken(options, protocol, shed, may_act=may_act, **retry)
    if protocol.asks:
        raise LinkError(f"tcp:{options.device}: {protocol.key} asks its devices: dial them")
    return ShedLink(TcpSpokenListener(options, protocol, **retry), shed)


class TcpSpoken(SpokenLink):
    """One connection to a peer that speaks a protocol. `rest` is that of `SpokenLink`.

    A peer that is asked has a connection only while this gateway may ask, as many devices take only one.
    Without, the link is up too: this gateway can take over.
    """

    def __init__(self, options: Tcp, protocol: Protocol, shed: Shed | None = None, **rest: Any) -> None:
        self.options = options
        self._watch: TimerHandle | None = None
        super().__init__(f"tcp:{options.device}", protocol, shed, options.queue_bytes, **rest)

    def _begin(self) -> None:
        if not self.protocol.asks or self._may_act(self._loop.time()):
            return super()._begin()
        self.state, self.fault = "up", ""
        self._timer = self._loop.call_later(LOOK_S, self._look)
        return None

    def _look(self) -> None:
        """Connect as soon as this gateway may ask. Meanwhile the link stays up, unless that fails."""
        self._begin()
        self.state = "up"

    def _go_up(self, device: Conversation) -> None:
        super()._go_up(device)
        if self.protocol.asks and self.pipe is not None:
            self._watch = self._loop.call_later(LOOK_S, self._look_whether_still)

    def _look_whether_still(self) -> None:
        """Close the connection as soon as another gateway asks."""
        if self.pipe is None or self.state != "up":
            return
        if self._may_act(self._loop.time()):
            self._watch = self._loop.call_later(LOOK_S, self._look_whether_still)
            return
        self._generation += 1  # so that this does not count as a loss
        self.pipe.close()
        self.pipe = None
        self._begin()

    def close(self) -> None:
        cancel(self._watch)
        super().close()

    def _open_port(self) -> BytePort:
        where = self.options.host, self.options.port
        sock = socket.create_connection(where, timeout=_CONNECT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return SocketPort(sock)


class TranslatingDecoder:
    """The decoder of one peer: its bytes go through a translator. `fault` is always None.

    `begin` gives it a place for the frames that only time completes.
    """

    __slots__ = ("_give", "_loop", "_scratch", "_stats", "_timer", "_translator", "fault")

    def __init__(self, translator: Translator[bytes], scratch: bytearray, stats: Stats) -> None:
        self._translator, self._scratch, self._stats = translator, scratch, stats
        self._loop = get_running_loop()
        self._timer: TimerHandle | None = None
        self._give: Callable[[Batch], None] = lambda _: None
        self.fault: str | None = None

    def begin(self, give: Callable[[Batch], None]) -> None:
        """Call `give` with the frames that time completes, from now on."""
        self._give = give

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""
        return memoryview(self._scratch)

    @property
    def waiting(self) -> int:
        """Nothing that counts: a translator bounds what it keeps."""
        return 0

    def revise(self, message_bytes: int) -> None:
        """Change nothing: the protocol bounds its messages."""

    def feed(self, read_bytes: int) -> Batch | None:
        """Return the frames that `read_bytes` bytes of the buffer complete, or None."""
        data = bytes(memoryview(self._scratch)[:read_bytes])
        messages = self._translator.receive([data], self._loop.time())
        self._count()
        self._arm()
        return from_payloads(messages) if messages else None

    def _count(self) -> None:
        self._stats.noise_bytes += self._translator.take_counts()[1]

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._translator.due_s < inf:
            self._timer = self._loop.call_at(self._translator.due_s, self._turn)

    def _turn(self) -> None:
        self._timer = None
        messages = list(self._translator.turn(self._loop.time()).messages)
        self._count()
        self._arm()
        if messages:
            self._give(from_payloads(messages))

    def end(self) -> bytes:
        """Stop, and return nothing: the translator counts what became no message."""
        if self._timer is not None:
            self._timer.cancel()
        messages = self._translator.end(self._loop.time())
        self._count()
        if messages:
            self._give(from_payloads(messages))
        return b""


class _Listener(ListenLink):
    """A listening link whose decoders may give frames at any time."""

    def _enter(self, pipe: StreamPipe) -> None:
        super()._enter(pipe)
        decoder = pipe.decoder
        assert isinstance(decoder, TranslatingDecoder)
        decoder.begin(lambda batch: self._hub.publish(batch, pipe))


class TcpSpokenListener(FrontLink):
    """A TCP port at which peers connect that speak a protocol, each with a pipe and a translator.

    What leaves is translated once for all of them.
    """

    link: ListenLink

    def __init__(self, options: Tcp, protocol: Protocol, **retry: Any) -> None:
        host, port = options.host, options.port
        self.options, self.protocol, self.name = options, protocol, f"tcp:{host}:{port}"
        self._scratch = bytearray(SCRATCH_BYTES)
        url = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
        framing = Framing(self._decoder, encode=Once(self._encode), unfit="not sent here", cut="")
        retry |= {"queue_bytes": options.queue_bytes, "peers": _PEERS, "silence_s": _SILENCE_S}
        try:
            self.link = _Listener(url, framing=framing, name=self.name, **retry)
        except ValueError as error:
            raise LinkError(f"{self.name}: {error}") from error

    def _translator(self, stats: Stats) -> Translator[bytes]:
        loop_time = get_running_loop().time
        return self.protocol.translator(Wire(self.name, "bytes", stats, partial(unix_s, loop_time)))

    def _decoder(self, stats: Stats) -> TranslatingDecoder:
        return TranslatingDecoder(self._translator(stats), self._scratch, stats)

    def _encode(self, batch: Batch) -> tuple[bytes, int]:
        """Return the bytes of a batch, and the number of its messages that are in them."""
        now_s, sent, count = get_running_loop().time(), list[bytes](), 0
        for message in payloads(batch):
            items = self._sender.send(message, now_s).items
            sent += items
            count += bool(items)
        return b"".join(sent), count

    @cached_property
    def _sender(self) -> Translator[bytes]:
        """The translator of what leaves, which reads nothing."""
        return self._translator(Stats())

    @property
    def queue_bytes(self) -> int:
        return self.options.queue_bytes

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to listen. Raises `LinkError` if it cannot, also for files of the protocol."""
        if self.link.state == "closed":
            self.link.open(hub, loop)

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""
        self.link.rehome(hub)

    def revise(self, other: Link) -> bool:
        """Take over the bounds of another link to the same place."""
        return isinstance(other, TcpSpokenListener) and self.link.revise(other.link)
