"""A TCP stream whose peers speak a protocol of their own."""

from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from typing import Any

from bridges.media.byte_stream import BytePort
from bridges.media.device import cancel
from bridges.media.shed_pipe import ShedLink
from bridges.media.shedding import Shed
from bridges.media.spoken import Conversation, SpokenLink
from bridges.media.tcp.medium import Tcp
from bridges.media.tcp.spoken_listener import TcpSpokenListener
from bridges.media.uart.remote import SocketPort
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import LOOK_S, always
from bus.errors import LinkError, words_of
from bus.hub import Link
from bus.machine.addresses import dialled
from bus.text import SAID_BYTES, after
from bus.transports.dialling import SERVED_S

_CONNECT_S = 5.0


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
        sock = dialled(self.options.host, self.options.port, _CONNECT_S)
        return SocketPort(sock, self.late_s)
