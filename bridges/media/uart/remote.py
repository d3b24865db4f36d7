"""Serial ports of servers on TCP: socket:// and rfc2217://, on sockets of our own.

Those of pyserial wait in close() and leak if the far end has gone, and its rfc2217:// has no descriptor and
an unbounded queue of single bytes.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from time import monotonic
from typing import Final

from bridges.media.uart.address import server_of
from bridges.media.uart.medium import Uart
from bridges.media.uart.rfc2217 import IAC, Client, escape
from bus.machine.addresses import dialled
from bus.text import after
from bus.transports.parting import abandon, part
from bus.transports.sockets import tune

_READ_BYTES = 4096  # in one turn of the loop
_CONNECT_S = 5.0
_SEND_BUFFER_BYTES = 8192  # small: the server's line is slow, and messages should wait in our queue
_SUSPENDED_BYTES = 1 << 20
SILENCE_S: Final = 30.0
"""The time for which the other end of a connection may acknowledge nothing, unless it has to be less."""


class SocketPort:
    """A connection to a serial server that forwards bytes unchanged.

    `late_s`: what is written must not come to the server so much later, as the kernel sends it again and
    again while a network is out; 0 where it may come late.
    """

    def __init__(self, sock: socket.socket, late_s: float = 0.0) -> None:
        self._socket, self._late_s = sock, late_s
        tune(sock, late_s or SILENCE_S)
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> bytes:
        return _received(self._socket.recv, OSError("closed by the other end"))

    def write(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def waiting(self) -> int:
        return 0

    def close(self) -> None:
        """Close the connection; where a loop runs, when the server has all, unless that may come too late."""
        if self._late_s:
            return abandon(self._socket)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._socket.close()
        return part(loop, self._socket)


class Rfc2217Port(SocketPort):
    """A connection to a serial server with RFC 2217. `client` has negotiated the settings of the port.

    `early` came from the line meanwhile.
    """

    def __init__(self, sock: socket.socket, client: Client, early: bytes = b"", late_s: float = 0.0) -> None:
        super().__init__(sock, late_s)
        self._client, self._early = client, early
        self._half = b""  # the second byte of an escape, if the socket accepted only the first

    def read(self) -> bytes:
        if self._early:
            data, self._early = self._early, b""
            return data
        data = self._client.feed(super().read())
        if self._client.refused:
            raise OSError(self._client.refused)
        with contextlib.suppress(OSError):  # the server has gone; what it sent before is read all the same
            self._answer()
        return data

    def _answer(self) -> None:
        replies = self._client.replies
        if replies and not self._half:
            del replies[: super().write(bytes(replies))]

    def write(self, data: bytes) -> int:
        self._answer()
        if self._client.replies or self._client.suspended:
            return 0
        coded = self._half + escape(data)
        taken = coded[: super().write(coded)]
        if self._half and not taken:
            return 0
        whole = taken[len(self._half) :]
        escapes = whole.count(IAC)
        self._half = IAC if escapes % 2 else b""
        return len(whole) - escapes // 2

    def waiting(self) -> int:
        return _SUSPENDED_BYTES if self._client.suspended else 0


def _received(read: Callable[[int], bytes], end: OSError | None = None) -> bytes:
    """Read without waiting; return b"" if there is nothing. Raises `end`, if given, for an empty read."""
    try:
        data = read(_READ_BYTES)
    except (BlockingIOError, InterruptedError):
        return b""
    if end is not None and not data:
        raise end
    return data


def _connect(url: str) -> socket.socket:
    """Connect to a server. Blocks, in the thread that opens devices, and so is no part of what dials on the
    loop: each address of a name in turn, as `socket.create_connection` has it."""
    sock = dialled(*server_of(url), _CONNECT_S)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    return sock


def open_remote(options: Uart, late_s: float) -> SocketPort:
    """Connect to the port of a server. Blocks; raises any error of that. `late_s` is that of `SocketPort`."""
    if options.port.startswith("socket://"):
        return SocketPort(_connect(options.port), late_s)
    return _open_rfc2217(options, late_s)


def _open_rfc2217(options: Uart, late_s: float) -> Rfc2217Port:
    client = Client(
        options.baud,
        options.parity,
        options.stopbits,
        options.rtscts,
        data_bits=options.data_bits,
        xonxoff=options.xonxoff,
        dtr=options.dtr,
        rts=options.rts,
    )
    sock = _connect(options.port)
    try:
        return Rfc2217Port(sock, client, _negotiate(sock, client), late_s)
    except BaseException:
        sock.close()
        raise


def _negotiate(sock: socket.socket, client: Client) -> bytes:
    """Negotiate the settings of the port. Return the bytes that the line sends meanwhile.

    Raises `OSError`, with what the server said, if it does not agree.
    """
    end_s, said = monotonic() + _CONNECT_S, b""
    while not client.ready:
        if client.refused:
            raise OSError(after(client.refused, said))
        with contextlib.suppress(ConnectionError):  # it has closed, but what it said can still be read
            sock.sendall(bytes(client.replies))
        client.replies.clear()
        sock.settimeout(max(0.001, end_s - monotonic()))
        try:
            data = sock.recv(_READ_BYTES)
        except TimeoutError as error:
            why = f"no agreement on the port's settings within {_CONNECT_S:g} s"
            raise OSError(after(why, said)) from error
        if not data:
            raise OSError(after("closed while the port's settings were negotiated", said))
        said += client.feed(data)
    return said
