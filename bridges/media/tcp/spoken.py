"""A TCP stream whose peers speak a protocol of their own."""

import socket
from asyncio import AbstractEventLoop, TimerHandle, get_running_loop
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bridges.media.byte_stream import BytePort
from bridges.media.device import Alarm, cancel
from bridges.media.shed_pipe import FrontLink, ShedLink
from bridges.media.shedding import Shed
from bridges.media.spoken import Conversation, SpokenLink, ear_of, unix_s
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.remote import SILENCE_S, SocketPort
from bridges.media.wire import Wired, WireTap
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import LOOK_S, Translator, Wire, always
from bus.errors import LinkError, words_of
from bus.hub import Hub, Link
from bus.input import InputWatch
from bus.ledger import Stats
from bus.text import SAID_BYTES, after, quoting
from bus.transports.dialling import SERVED_S
from bus.transports.framing import Framing
from bus.transports.listening import ListenLink
from bus.transports.scratch import shared_scratch
from bus.transports.stream import StreamPipe
from bus.urls import url_host
from bus.wire.batch import Batch, batch_of, from_payloads, payloads
from bus.wire.envelope import MESSAGE_BYTES_MAX

_CONNECT_S = 5.0
_PEERS = 1024


def tcp_spoken(
    options: Tcp,
    protocol: Protocol,
    shed: Shed | None = None,
    may_act: Callable[[float], bool] = always,
    names: Sequence[str] = (),
    **retry: Any,
) -> Link:
    """Make the link for a stream's settings and a protocol: it dials one peer, or listens for many.

    Raises `LinkError` for a protocol with one device at a listener.
    """
    if options.mode == "dial":
        return TcpSpoken(options, protocol, shed, may_act=may_act, names=names, **retry)
    if protocol.asks:
        raise LinkError(f"tcp:{options.device}: {protocol.key} asks its devices: dial them")
    if protocol.holds:
        raise LinkError(f"tcp:{options.device}: {protocol.key} has one device: dial it")
    return ShedLink(TcpSpokenListener(options, protocol, names, **retry), shed)


class TcpSpoken(SpokenLink):
    """One connection to a peer that speaks a protocol. `rest` is that of `SpokenLink`.

    A peer that is asked has a connection only while this gateway may ask, as many devices take only one.
    Without, the link is up too: this gateway can take over. But where it could not connect when it last
    tried, it tries on as a standby, and closes then: else the lease would come back and go for ever. Only a
    connection that lasted, or that something came by and that was still there then, is a success: a device
    may accept and close at once, and a busy server says so first.
    When nobody else asks it any more, the link counts as up while the connection lasts: this gateway may take
    over with it. The connection is made in the thread that opens devices, as one to any other is opened.
    """

    def __init__(self, options: Tcp, protocol: Protocol, shed: Shed | None = None, **rest: Any) -> None:
        self.options = options
        self._watch: TimerHandle | None = None
        self._out_of_reach = False  # when it last tried
        self._tried: Conversation | None = None  # a connection of a standby, which is to last for a while,
        self._tried_s = 0.0  # since then
        self._heard_tried = b""  # what came by it
        self._is_hurried = False  # the attempt that is made now
        super().__init__(f"tcp:{options.device}", protocol, shed, options.queue_bytes, **rest)

    @property
    def _stands_by(self) -> bool:
        return self.protocol.asks and not self._may_act(self._loop.time())

    def _begin(self) -> None:
        if self._out_of_reach or not self._stands_by:
            super()._begin()
        else:
            self._wait_to_ask()

    def _wait_to_ask(self) -> None:
        """Be up without a connection, until this gateway may ask."""
        self.state, self.fault = "up", ""
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Connect as soon as this gateway may ask. Meanwhile the link stays up, unless that fails."""
        self._begin()
        self.state = "up"

    def _wait(self, why: str) -> None:
        self._out_of_reach, self._is_hurried = True, False
        super()._wait(why)

    def hurry(self) -> None:
        """Try at once, and be ready to take over by that connection: nobody else asks the device now."""
        if self._tried is not None:
            return self._count_as_up()
        self._is_hurried = self.state in ("opening", "waiting")
        return super().hurry()

    def _count_as_up(self) -> None:
        self.state, self.fault = "up", ""

    def _go_up(self, device: Conversation) -> None:
        if self._stands_by:
            return self._try_out(device)
        self._is_hurried = False
        super()._go_up(device)
        cancel(self._watch)  # of a connection before, which was lost a moment ago
        if self.protocol.asks and self.pipe is not None:
            self._watch = self._loop.call_later(LOOK_S, self._look_whether_still)
        return None

    def _try_out(self, device: Conversation) -> None:
        """Keep a connection for a while, and say nothing: this gateway can take over if it lasts."""
        self._tried, self._tried_s, self.state = device, self._loop.time(), "waiting"
        self._heard_tried = b""
        if self._is_hurried:
            self._count_as_up()
        self._loop.add_reader(device.port.fileno(), self._on_tried)
        self._look_at_trial()

    def _look_at_trial(self) -> None:
        """Use the connection as soon as this gateway may ask, or end the trial if it has lasted."""
        if self._tried is not None and not self._stands_by:
            return self._go_up(self._end_trial(self._tried))
        if self._heard_tried or self._loop.time() - self._tried_s >= SERVED_S:
            return self._succeeded()
        self._timer = self._loop.call_later(min(LOOK_S, SERVED_S), self._look_at_trial)
        return None

    def _on_tried(self) -> None:
        assert self._tried is not None
        try:
            came = self._tried.port.read()
        except OSError as error:
            self._release_tried()
            return self._wait(after(words_of(error), self._heard_tried))
        self._heard_tried = (self._heard_tried + came)[-SAID_BYTES:]
        return None

    def _succeeded(self) -> None:
        """Let a connection go that has shown that the device is there."""
        self._release_tried()
        self._out_of_reach = False
        self._pauses.reset()
        self._begin()

    def _end_trial(self, device: Conversation) -> Conversation:
        cancel(self._timer)
        self._tried, self._is_hurried = None, False
        self._loop.remove_reader(device.port.fileno())
        return device

    def _release_tried(self) -> None:
        if self._tried is not None:
            self._release(self._end_trial(self._tried))

    def _look_whether_still(self) -> None:
        """Close the connection as soon as another gateway asks."""
        if self.pipe is None or self.state != "up":
            return
        if not self._stands_by:
            self._watch = self._loop.call_later(LOOK_S, self._look_whether_still)
            return
        self._generation += 1  # so that this does not count as a loss
        self._out_of_reach = self._loop.time() - self._up_s < SERVED_S
        self.pipe.close()
        self.pipe = None
        self._begin()

    def close(self) -> None:
        cancel(self._watch)
        self._release_tried()
        super().close()

    def _open_port(self) -> BytePort:
        where = self.options.host, self.options.port
        sock = socket.create_connection(where, timeout=_CONNECT_S)
        return SocketPort(sock, self.late_s)


class _Peer:
    """One peer of a listener: its translator, which is the decoder of its bytes, and encodes what it gets.

    `fault` is always None. `begin` gives it a place for the frames that only time completes.
    """

    fault: str | None = None

    def __init__(
        self,
        make: Callable[[Stats], Translator[bytes]],
        watch: InputWatch,
        wire: WireTap,
    ) -> None:
        self._make, self._scratch, self.watch, self._wire = make, shared_scratch(), watch, wire
        self._loop = get_running_loop()
        self._alarm = Alarm(self._turn)
        self._give: Callable[[Batch], None] = lambda _: None
        self._end_it: Callable[[str], None] = lambda _: None
        self._unsent: dict[str, int] = {}
        self._said = self._answers = b""

    def decoder(self, stats: Stats) -> "_Peer":
        """Return the decoder, which counts in `stats`."""
        self._stats, self.translator = stats, self._make(stats)
        return self

    def begin(self, give: Callable[[Batch], None], end_it: Callable[[str], None]) -> None:
        """Call `give` with the frames that time completes, and `end_it` when the conversation is over."""
        self._give, self._end_it = give, end_it

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
        if self._wire.hears:
            self._wire.tell((data,))
        messages = self.translator.take([data], self._loop.time())
        self._count(data)
        self._answer()
        self._arm()
        return batch_of(messages)

    def _answer(self) -> None:
        """Have the translator say what it has to say at once, for `answer`."""
        if self.translator.due_s <= self._loop.time():
            self._answers += b"".join(self.translator.advance(self._loop.time()).items)

    def answer(self) -> tuple[bytes, bool]:
        """Return what the translator says after a read, and that it goes on."""
        answers, self._answers = self._answers, b""
        if self._wire.hears and answers:
            self._wire.tell((answers,), True)
        return answers, False

    def _count(self, data: bytes) -> None:
        found, noise = self.translator.take_counts()
        self._stats.noise_bytes += noise
        self._said = b"" if found else (self._said + data)[-SAID_BYTES:]
        self.watch.hear(len(data), found, noise, self._said)

    def _arm(self) -> None:
        """Have the translator called when it wants to be, and the conversation ended if it is over."""
        self._alarm.set(self._loop, self.translator.due_s)
        if self.translator.over:
            self._loop.call_soon(self._end_it, quoting(self.translator.over, self._said))

    def _turn(self) -> None:
        messages = list(self.translator.advance(self._loop.time()).messages)
        self._count(b"")
        self._arm()
        if messages:
            self._give(from_payloads(messages))

    def end(self) -> bytes:
        """Stop, and return nothing: the translator counts what became no message."""
        messages = self.translator.finish(self._loop.time())
        self._count(b"")
        self.watch.close()
        self._alarm.cancel()
        if messages:
            self._give(from_payloads(messages))
        return b""

    def encode(self, batch: Batch) -> tuple[bytes, int]:
        """Return the bytes of a batch for this peer, and the number of its messages that are in them."""
        now_s, sent, count = self._loop.time(), list[bytes](), 0
        self._unsent = {}
        for message in payloads(batch):
            items, why, _ = self.translator.give(message, now_s)
            sent += items
            count += not why
            if why:
                self._unsent[why] = self._unsent.get(why, 0) + 1
        self._arm()
        said = b"".join(sent)
        if self._wire.hears and said:
            self._wire.tell((said,), True)
        return said, count

    def unsent(self) -> dict[str, int]:
        """Return why messages of the last batch are not in its bytes, with their numbers."""
        return self._unsent


class _Listener(ListenLink):
    """A listening link that makes a `_Peer` of each connection."""

    def __init__(self, url: str, make: Callable[[], _Peer], **options: Any) -> None:
        super().__init__(url, framing=Framing(lambda _: make()), **options)
        self._make = make

    def _framing_of_peer(self) -> Framing:
        peer = self._make()
        return Framing(peer.decoder, encode=peer.encode, unfit=peer.unsent, cut="", answer=_Peer.answer)

    def _enter(self, pipe: StreamPipe) -> None:
        super()._enter(pipe)
        peer = pipe.decoder
        assert isinstance(peer, _Peer)
        peer.begin(lambda batch: self._hub.publish(batch, pipe), pipe.close)


class TcpSpokenListener(FrontLink, Wired):
    """A TCP port at which peers connect that speak a protocol, each with a pipe and a translator."""

    link: _Listener

    def __init__(self, options: Tcp, protocol: Protocol, names: Sequence[str] = (), **retry: Any) -> None:
        host, port = options.host, options.port
        self.options, self.protocol, self.name = options, protocol, f"tcp:{host}:{port}"
        self.names, self.wire_tap = names, WireTap()
        url = f"tcp://{url_host(host)}:{port}"
        retry |= {"queue_bytes": options.queue_bytes, "message_bytes": MESSAGE_BYTES_MAX}
        retry |= {"peers": _PEERS, "silence_s": SILENCE_S}
        try:
            self.link = _Listener(url, self._peer, name=self.name, **retry)
        except ValueError as error:
            raise LinkError(f"{self.name}: {error}") from error

    def _peer(self) -> _Peer:
        """Make the decoder and encoder of a new peer."""
        watch = InputWatch(self.name, ear_of(self.protocol))
        watch.open(get_running_loop())
        return _Peer(self._translator, watch, self.wire_tap)

    def _translator(self, stats: Stats) -> Translator[bytes]:
        clock = partial(unix_s, get_running_loop().time)
        return self.protocol.translator(Wire(self.name, "bytes", stats, clock, names=self.names))

    @property
    def condition(self) -> str:
        """The noise of a peer, or the trouble that its translator tells; "" while there is none."""
        said = (peer.watch.words or peer.translator.condition for peer in self._peers)
        return next(filter(None, said), "")

    @property
    def _peers(self) -> list[_Peer]:
        return [pipe.decoder for pipe in self.link.pipes if isinstance(pipe.decoder, _Peer)]

    @property
    def queue_bytes(self) -> int:
        return self.options.queue_bytes

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to listen. Raises `LinkError` if it cannot, also for files of the protocol."""
        if self.link.state == "closed":
            try:
                self.protocol.translator(Wire(self.name, "bytes", Stats()))
            except (OSError, ValueError, ImportError) as error:
                raise LinkError(f"{self.name}: {words_of(error)}") from error
            self.link.open(hub, loop)

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""
        self.link.rehome(hub)

    def revise(self, other: Link) -> bool:
        """Take over the bounds and the names of another link to the same place."""
        if not isinstance(other, TcpSpokenListener) or not self.link.revise(other.link):
            return False
        self.options, self.names = other.options, other.names
        for peer in self._peers:
            peer.translator.know(self.names)
        return True
