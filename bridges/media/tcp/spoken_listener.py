"""A listener on TCP whose peers speak a protocol of theirs: each has a translator of its own."""

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bridges.media.device import Alarm
from bridges.media.shed_pipe import FrontLink
from bridges.media.spoken import ear_of, unix_s
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.remote import SILENCE_S
from bridges.media.wire import Wired, WireTap
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import Translator, Wire
from bus.errors import LinkError, words_of
from bus.hub import Hub, Link
from bus.input import InputWatch
from bus.ledger import Stats
from bus.text import SAID_BYTES, quoting
from bus.transports.framing import Framing
from bus.transports.listening import ListenLink
from bus.transports.scratch import shared_scratch
from bus.transports.stream import StreamPipe
from bus.urls import url_host
from bus.wire.batch import Batch, batch_of, from_payloads, payloads
from bus.wire.envelope import MESSAGE_BYTES_MAX

_PEERS = 1024


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
