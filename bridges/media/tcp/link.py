"""A link over plain TCP, for peers without SP: TMQ frames back to back, or COBS from a serial device server.

Links, pipes, limits and retries are those of a bus (`bus.transports`). The framing differs, and there is no
handshake (docs/wire/tcp.md).
"""

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable
from typing import Any, Literal
from weakref import WeakSet

from bridges.media.likeness import likeness
from bridges.media.shed_pipe import FrontLink, ShedLink
from bridges.media.shedding import Shed
from bridges.media.tcp.frames import CobsDecoder, FramesDecoder, join, join_cobs
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.codec import WIRE_BYTES_MAX
from bus.errors import LinkError
from bus.hub import Hub, Link
from bus.input import InputWatch
from bus.noise import Ear
from bus.transports.dialling import DialLink
from bus.transports.framing import Framing, Once
from bus.transports.listening import ListenLink
from bus.transports.scratch import shared_scratch
from bus.transports.stream import StreamPipe
from bus.urls import url_host
from bus.wire.envelope import MESSAGE_BYTES_MAX


def _framing(kind: Literal["frames", "cobs"], watch: Callable[[], InputWatch]) -> Framing:
    """Return the framing of one link. It encodes a batch once for all peers.

    `watch()` makes the watch over a peer's input.
    """
    if kind == "cobs":
        return Framing(
            lambda stats: CobsDecoder(shared_scratch(), stats, watch()),
            encode=Once(join_cobs),
            unfit="oversize",
        )
    return Framing(lambda _: FramesDecoder(shared_scratch()), encode=Once(join))


def tcp_link(options: Tcp, shed: Shed | None = None, **retry: Any) -> Link:
    """Make the link for a stream's settings. Its pipes drop messages by the policy `shed`, if given."""
    return ShedLink(TcpFramesLink(options, **retry), shed)


class TcpFramesLink(FrontLink):
    """A plain TCP stream of frames as a link. It dials one peer, or listens for many, each with a pipe.

    With `frames` a peer that sends an illegal header is disconnected. `cobs` (docs/wire/uart.md) can
    resynchronise. Messages above `queue_bytes` for a peer are dropped as `queue full`. `peers` limits how
    many are connected. A peer that takes nothing for `silence_s` seconds while messages wait is disconnected.
    `retry_min_s` and `retry_max_s` limit the pauses of a dialling link. Raises `LinkError` for settings that
    can never work.
    """

    link: DialLink | ListenLink

    def __init__(self, options: Tcp, peers: int = 1024, silence_s: float = 30.0, **retry: Any) -> None:
        self.options, host, port = options, options.host, options.port
        self.name = f"tcp:{host}:{port}"
        if silence_s < 1:
            raise LinkError(f"{self.name}: silence_s must be at least 1")
        url = f"tcp://{url_host(host)}:{port}"
        make = DialLink if options.mode == "dial" else ListenLink
        retry |= {"queue_bytes": options.queue_bytes, "message_bytes": MESSAGE_BYTES_MAX, "peers": peers}
        retry |= {"name": self.name, "silence_s": silence_s}
        self._watches = WeakSet[InputWatch]()
        framing = _framing(options.framing, self._watch)
        try:
            self.link = make(url, framing=framing, **retry)
        except ValueError as error:
            raise LinkError(f"{self.name}: {error}") from error

    def _watch(self) -> InputWatch:
        """Make the watch over the input of a new peer."""
        watch = InputWatch(self.name, Ear(most=WIRE_BYTES_MAX, likeness=likeness))
        watch.open(get_running_loop())
        self._watches.add(watch)
        return watch

    @property
    def condition(self) -> str:
        """The noise of a peer; "" while there is none."""
        if not self._watches:  # as most often, and to iterate over weak references costs much
            return ""
        return next((watch.words for watch in self._watches if watch.words), "")

    @property
    def pipes(self) -> set[StreamPipe]:
        """The pipes of the connected peers."""
        return self.link.pipes

    @property
    def queue_bytes(self) -> int:
        return self.options.queue_bytes

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to dial or listen. Raises `LinkError` if it cannot listen."""
        if self.link.state == "closed":
            self.link.open(hub, loop)

    def rehome(self, hub: Hub) -> None:
        """Move to another hub with all peers, which notice nothing. Call it between two batches."""
        self.link.rehome(hub)

    def revise(self, other: Link) -> bool:
        """Take over the bounds of another link to the same place."""
        if not isinstance(other, TcpFramesLink) or not self.link.revise(other.link):
            return False
        self.options = other.options
        return True
