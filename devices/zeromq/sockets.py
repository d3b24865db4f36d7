"""A ZeroMQ socket on an asyncio loop: it hears messages in batches, and sends without waiting."""

import errno
import ipaddress
import socket
from asyncio import AbstractEventLoop, Handle
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final, Literal, NamedTuple

from bus.errors import LinkError, words_of
from bus.extras import lacking
from devices.zeromq.limits import Limits

Kind = Literal["router", "dealer", "pub", "xpub", "sub"]
EXTRA: Final = "dbp"

_KEEPALIVE_S = (10, 5, 3)  # idle, interval, count: a machine that vanished is noticed within half a minute
_RECONNECT_MS = (100, 2000)
_SOCKETS = 8192  # of the process; each takes descriptors, which end first


class Message(NamedTuple):
    """The frames of a message; of a router's, the first is the peer's identity.

    `host` is the peer's address; "" if that is not known.
    """

    frames: list[bytes]
    host: str


class Socket:
    """One socket. `hears` is called with each batch of messages, in order; it must not raise.

    `received` and `sent` count messages, `dropped` those that could not be sent: the queue is full, or no
    such peer is connected. A PUB drops by itself what a slow subscriber does not take: that is not counted.
    """

    def __init__(
        self, kind: Kind, hears: Callable[[list[Message]], None], limits: Limits | None = None
    ) -> None:
        self.received = self.sent = self.dropped = 0
        self._kind, self._hears, self._limits = kind, hears, limits or Limits()
        self._socket: Any = None
        self._turn: Handle | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        """Make the socket, on its loop. Raises `LinkError` if pyzmq is missing."""
        if find_spec("zmq") is None:
            raise LinkError(lacking("ZeroMQ", "pyzmq", EXTRA))
        import zmq

        context: Any = zmq.Context.instance()
        context.max_sockets = _SOCKETS
        self._zmq, self._loop = zmq, loop
        try:
            self._socket = context.socket(getattr(zmq, self._kind.upper()))
        except zmq.ZMQError as error:
            raise LinkError(f"ZeroMQ: {words_of(error)}") from error
        self._set_up()
        loop.add_reader(self._socket.getsockopt(zmq.FD), self._on_turn)

    def _set_up(self) -> None:
        zmq, limits, made = self._zmq, self._limits, self._socket
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.IPV6, 1)
        made.setsockopt(zmq.MAXMSGSIZE, limits.message_bytes)
        made.setsockopt(zmq.HANDSHAKE_IVL, int(limits.handshake_s * 1000))
        made.set_hwm(limits.queue)
        options = (zmq.TCP_KEEPALIVE_IDLE, zmq.TCP_KEEPALIVE_INTVL, zmq.TCP_KEEPALIVE_CNT)
        for option, value in ((zmq.TCP_KEEPALIVE, 1), *zip(options, _KEEPALIVE_S, strict=True)):
            made.setsockopt(option, value)
        made.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS[0])
        made.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MS[1])
        if self._kind == "router":
            made.setsockopt(zmq.ROUTER_MANDATORY, 1)  # so that `send` can say that nobody gets it

    def bind(self, host: str, port: int, tries: int = 1) -> int:
        """Listen, and return the port: the first that is free of `tries`. Port 0 is any free one.

        Raises `LinkError`.
        """
        address = _address(host)
        for number in range(port, port + (tries if port else 1)):
            try:
                self._socket.bind(f"tcp://{address}:{number or '*'}")
            except self._zmq.ZMQError as error:
                if error.errno == errno.EADDRINUSE and number + 1 < min(port + tries, 1 << 16):
                    continue
                raise LinkError(f"tcp://{host}:{number}: {words_of(error)}") from error
            return int(self._socket.getsockopt(self._zmq.LAST_ENDPOINT).rstrip(b"\0").rpartition(b":")[2])
        raise ValueError(f"{tries} tries")

    def connect(self, host: str, port: int) -> None:
        """Connect, now or as soon as somebody listens there. Raises `LinkError` for a wrong address."""
        try:
            self._socket.connect(f"tcp://{_bracketed(host)}:{port}")
        except self._zmq.ZMQError as error:
            raise LinkError(f"tcp://{host}:{port}: {words_of(error)}") from error

    def subscribe(self, topic: bytes) -> None:
        """Hear what is published and begins with `topic`. For a `sub`."""
        self._socket.setsockopt(self._zmq.SUBSCRIBE, topic)

    def unsubscribe(self, topic: bytes) -> None:
        """End one `subscribe` of this topic."""
        self._socket.setsockopt(self._zmq.UNSUBSCRIBE, topic)

    def send(self, frames: Sequence[bytes]) -> bool:
        """Send a message, or return False and count it: the queue is full, or no such peer is connected.

        The first frame of a router's message is the identity of the peer.
        """
        if self._socket is None:
            self.dropped += 1
            return False
        try:
            self._socket.send_multipart(frames, self._zmq.NOBLOCK)
        except self._zmq.ZMQError:
            self.dropped += 1
            return False
        finally:
            self._look_again()
        self.sent += 1
        return True

    def _look_again(self) -> None:
        """See soon whether there is something to read: the descriptor tells each arrival once only.

        Whatever libzmq does on the socket, a send too, can take that sign.
        """
        if self._turn is None and self._socket is not None:
            self._turn = self._loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._socket is None:
            return
        messages = self._read()
        if len(messages) == self._limits.read:
            self._look_again()
        if messages:
            self.received += len(messages)
            self._hears(messages)

    def _read(self) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < self._limits.read:
            try:
                parts = self._socket.recv_multipart(self._zmq.NOBLOCK, copy=False)
            except self._zmq.ZMQError:
                break
            messages.append(Message([part.bytes for part in parts], self._host(parts[-1])))
        return messages

    def _host(self, part: Any) -> str:
        try:
            return str(part.get("Peer-Address")).removeprefix("::ffff:")  # IPv4 at a socket of both
        except self._zmq.ZMQError:
            return ""

    def close(self) -> None:
        """Close; what waits to be sent is lost. Idempotent."""
        made, self._socket = self._socket, None
        if made is None:
            return
        self._loop.remove_reader(made.getsockopt(self._zmq.FD))
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        made.close(0)


def _address(host: str) -> str:
    """Return the address to listen at, as libzmq wants it. Raises `LinkError`."""
    if host in ("", "*"):
        return "*"
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LinkError(f"{host}: {words_of(error)}") from error
    return _bracketed(str(found[0][4][0]))


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
