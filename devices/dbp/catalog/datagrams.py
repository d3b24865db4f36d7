"""The datagrams of a catalog: heartbeats of services, on the UDP port that has the number of the TCP port."""

import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from typing import Any, Final

from bus.transports.binding import Binding, SocketPlace
from bus.transports.inlet import FULL, Inlet, widen
from bus.transports.intake import Received, Turns, drained, ignore

_DATAGRAM_BYTES: Final = 512  # longer than any valid one
_RECEIVE_BYTES: Final = 4 << 20

Answer = Callable[[bytes, str], bytes]
"""A function that takes a datagram and the address of its sender. It returns the answer, b"" for none."""


class Datagrams:
    """A UDP socket, which answers each datagram by at most one of about the same size, hosts by turns.

    A sender can forge its address, so answers must not amplify traffic. `reject(reason, count)` counts
    datagrams that are dropped because too many come.
    """

    def __init__(self, answer: Answer, reject: Callable[[str, int], object]) -> None:
        self._answer, self._reject = answer, reject
        self._socket: socket.socket | None = None

    def open(self, loop: AbstractEventLoop, host: str, port: int, patient: bool = False) -> None:
        """Bind, or wait for the address. Raises `LinkError` for a port that is taken, if not `patient`."""
        self._loop = loop
        place = 0, (host, port)
        url = f"udp://{host or '0.0.0.0'}:{port}"
        self.binding = Binding(url, place, self._bind, self._on_bound, socket.SOCK_DGRAM)
        self.binding.open(loop, patient)

    def _bind(self, place: SocketPlace) -> socket.socket:
        sock = socket.socket(place[0], socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            widen(sock, _RECEIVE_BYTES)
            sock.bind(place[1])
        except OSError:
            sock.close()
            raise
        return sock

    def _on_bound(self, sock: socket.socket) -> None:
        self._socket, self._inlet = sock, Inlet(sock, self._reject)
        self._turns = Turns(self._loop, self._take, ignore, self._lose, self._inlet)
        self._loop.add_reader(sock, self._on_readable)

    def _lose(self, count: int) -> None:
        self._reject(FULL, count)

    def _on_readable(self) -> None:
        if self._socket is not None:
            received = drained(self._socket, _DATAGRAM_BYTES, passing=OSError)
            self._turns.hear(received, self._inlet.look())

    def _take(self, received: Sequence[Received]) -> None:
        for data, address in received:
            assert isinstance(address, tuple)
            answer = self._answer(data, str(address[0]).removeprefix("::ffff:"))
            if answer and self._socket is not None:
                self._say(answer, address)

    def _say(self, answer: bytes, address: tuple[Any, ...]) -> None:
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
            self._reject("closed", self._turns.end())
