"""The datagrams of a catalog: heartbeats of services, on the UDP port that has the number of the TCP port."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable

from bus.transports.binding import Binding, Place

_READS = 256  # datagrams taken in one wake-up
_DATAGRAM_BYTES = 512  # longer than any valid one

Answer = Callable[[bytes, str], bytes]
"""Takes a datagram and the address of its sender. Returns the answer, b"" for none."""


class Datagrams:
    """A UDP socket, which answers each datagram by at most one of about the same size.

    A sender can forge its address, so answers must not amplify traffic.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._socket: socket.socket | None = None

    def open(self, loop: AbstractEventLoop, host: str, port: int, patient: bool = False) -> None:
        """Bind, or wait for the address. Raises `LinkError` for a port that is taken, if not `patient`."""
        self._loop = loop
        place = 0, (host, port)
        url = f"udp://{host or '0.0.0.0'}:{port}"
        self.binding = Binding(url, place, self._bind, self._on_bound, socket.SOCK_DGRAM)
        self.binding.open(loop, patient)

    def _bind(self, place: Place) -> socket.socket:
        sock = socket.socket(place[0], socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.bind(place[1])
        except OSError:
            sock.close()
            raise
        return sock

    def _on_bound(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop.add_reader(sock, self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(_READS):
            if self._socket is None:
                return
            try:
                data, address = self._socket.recvfrom(_DATAGRAM_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # of an earlier answer: the peer no longer listens
                continue
            answer = self._answer(data, str(address[0]).removeprefix("::ffff:"))
            if answer and self._socket is not None:
                self._say(answer, address)

    def _say(self, answer: bytes, address: tuple[str, int]) -> None:
        assert self._socket is not None
        try:
            self._socket.sendto(answer, address)
        except OSError:
            return  # the next heartbeat is answered again

    def close(self) -> None:
        """Stop. Idempotent."""
        self.binding.close()
        sock, self._socket = self._socket, None
        if sock is not None:
            if sock.fileno() >= 0:
                self._loop.remove_reader(sock)
            sock.close()
