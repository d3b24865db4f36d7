"""A simulated serial line for the real links: full duplex with two ends, or a shared pair with many."""

import contextlib
import errno
import socket
from asyncio import AbstractEventLoop
from dataclasses import dataclass
from functools import partial
from typing import Any

from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bridges.media.uart.remote import SocketPort
from bridges.media.uart.spoken import UartSpoken
from bridges.protocols.protocol import Protocol
from bridges.simulate.loop import socket_pair
from bridges.simulate.wire import Faults, Order, Wire, WireEnd, bend_bytes, settings, trouble

_CHUNK_BYTES = 256  # delivered as one piece when its last byte has been sent
_CHUNK_S = 1e-3  # the same for a shared pair; short, because others must soon hear that somebody sends
_BUFFER_BYTES = 4096  # of the sender's driver, as for a tty of Linux
_BITS = 10  # of a byte: start, eight of data, stop
_BREAK = b"\0"  # received from a line that is held low


@dataclass(slots=True)
class _Burst:
    """Bytes on the line, one after the other."""

    data: bytes
    spoiled: bool = False  # two ends sent at once


class SerialLine(Wire):
    """A line at `baud`. `shared`: one pair for all ends, as in RS-485; ends that send at once collide.

    `echo`: each end of a shared pair also hears itself, as with adapters that receive while they send.
    `stuck = True` holds the line low: bytes sent then are lost. There is no `reordering` on a wire.
    """

    has = frozenset({"loss", "duplication", "corruption", "delay_s", "jitter_s"})

    def __init__(
        self,
        baud: int = 115200,
        shared: bool = False,
        echo: bool = False,
        seed: int = 0,
        faults: Faults | None = None,
    ) -> None:
        super().__init__(seed, faults)
        self.baud, self.shared, self.echo = baud, shared, echo
        self.chunk_bytes = max(1, int(baud / _BITS * _CHUNK_S)) if shared else _CHUNK_BYTES
        self.ends: list[SerialEnd] = []
        self.on_air: list[_Burst] = []

    def end(self, name: str = "") -> "SerialEnd":
        """Add an end. Raises `ValueError` for the third end of a line that is not shared."""
        if len(self.ends) == 2 and not self.shared:
            raise ValueError("a full-duplex line has two ends; use SerialLine(shared=True) for more")
        made = SerialEnd(self, name or f"end{len(self.ends)}")
        self.ends.append(made)
        return made

    def link(self, name: str = "", **options: Any) -> "SimulatedUart":
        """Return a `UartLink` on a new end; `options`: fields of `Uart` and arguments of `UartLink`."""
        return SimulatedUart(self.end(name), **options)

    def speaking(self, protocol: Protocol, name: str = "", **options: Any) -> "SpokenUart":
        """Return a `UartSpoken` on a new end; `options`: fields of `Uart` and arguments of the link."""
        return SpokenUart(self.end(name), protocol, **options)

    def bend(self, loop: AbstractEventLoop, end: str, burst: _Burst) -> bytes:
        """Return the bytes that a listener receives of `burst`."""
        if self.stuck:
            self.note(loop, end, "stuck", burst.data)
            return _BREAK
        if burst.spoiled:
            self.note(loop, end, "collision", burst.data)
            return self.random.randbytes(len(burst.data))
        heard = bend_bytes(burst.data, self.random, self.faults)
        if heard != burst.data:
            self.note(loop, end, "noise", heard)
        return heard

    def listeners(self, speaker: "SerialEnd") -> "list[SerialEnd]":
        """Return the ends that hear `speaker`."""
        return [end for end in self.ends if end is not speaker or (self.shared and self.echo)]


class SerialEnd(WireEnd):
    """One end of a line: opened like a device, unplugged with `unplug()`, plugged in again with `plug()`.

    With `clogged = True` the device here reads nothing. On a line of two the far end then has to wait
    (RTS/CTS); on a shared pair the bytes are lost. A test's own device uses the socket that `open`
    returns, for instance with `asyncio.open_connection(sock=...)`.
    """

    def __init__(self, line: SerialLine, name: str) -> None:
        super().__init__(name)
        self.line = line
        self.driver_bytes = 0  # in the driver, not yet on the line; counted only for a link's port
        self._socket: socket.socket | None = None
        self._loop: AbstractEventLoop | None = None
        self._order = Order()
        self._sending, self._begun_s = False, 0.0

    def open(self, loop: AbstractEventLoop) -> socket.socket:
        """Open this end and return the device's socket. Raises `OSError` while it is unplugged."""
        if not self.plugged:
            raise trouble(errno.ENODEV, f"could not open {self.name}: ")
        ours, theirs = socket_pair(loop)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        loop.call_soon_threadsafe(self._join, loop, ours)
        return theirs

    def _join(self, loop: AbstractEventLoop, sock: socket.socket) -> None:
        self._leave()
        self._loop, self._socket, self.driver_bytes = loop, sock, 0
        self.line.note(loop, self.name, "open")
        self._listen()

    def _leave(self) -> None:
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def unplug(self) -> None:
        """Unplug the device. The program sees it disappear; bytes in flight are lost."""
        self.plugged = False
        if self._loop is not None:
            self.line.note(self._loop, self.name, "unplugged")
        self._leave()

    def _on_clogged(self) -> None:
        for end in self.line.ends:
            end.go_on()

    def go_on(self) -> None:
        """Send waiting bytes, if the far end reads again."""
        if not self._sending:
            self._listen()

    def _held_back(self) -> bool:
        return not self.line.shared and any(end.clogged for end in self.line.ends if end is not self)

    def _listen(self) -> None:
        if self._socket is None or self._loop is None:
            return
        if self._held_back():
            self._loop.remove_reader(self._socket)
        else:
            self._loop.add_reader(self._socket, self._on_readable)

    def _on_readable(self) -> None:
        assert self._socket is not None
        assert self._loop is not None
        self._loop.remove_reader(self._socket)
        try:
            data = self._socket.recv(self.line.chunk_bytes)
        except OSError:
            data = b""
        if data:
            self._transmit(self._loop, data)
        else:
            self._leave()

    def _transmit(self, loop: AbstractEventLoop, data: bytes) -> None:
        burst = _Burst(data)
        if self.line.shared:
            burst.spoiled = bool(self.line.on_air)
            for other in self.line.on_air:
                other.spoiled = True
        self.line.on_air.append(burst)
        self._sending, self._begun_s = True, loop.time()
        loop.call_later(len(data) * _BITS / self.line.baud, self._transmitted, loop, burst)

    def waiting(self) -> int:
        """Return the bytes that a link's port has accepted and the line has not yet carried."""
        if not self._sending or self._loop is None:
            return self.driver_bytes
        on_line = int((self._loop.time() - self._begun_s) * self.line.baud / _BITS)
        return max(0, self.driver_bytes - min(on_line, self.line.chunk_bytes))

    def _transmitted(self, loop: AbstractEventLoop, burst: _Burst) -> None:
        self.line.on_air.remove(burst)
        self._sending = False
        self.driver_bytes = max(0, self.driver_bytes - len(burst.data))
        self._listen()
        if not self.plugged:
            return
        for end in self.line.listeners(self):
            end.hear(loop, self.line.bend(loop, self.name, burst))

    def hear(self, loop: AbstractEventLoop, data: bytes) -> None:
        """Deliver bytes to this end after the line's delay."""
        if data:
            self._order.at(loop, self.line.delay_s(), partial(self._come_out, loop, data))

    def _come_out(self, loop: AbstractEventLoop, data: bytes) -> None:
        taken = 0
        if self._socket is not None and not self._clogged:
            with contextlib.suppress(OSError):
                taken = self._socket.send(data)
        self.line.note(loop, self.name, "heard", data[:taken])
        if taken < len(data):
            self.line.note(loop, self.name, "overrun" if self._socket else "nobody", data[taken:])


class SerialPort(SocketPort):
    """The port of a link on an open end: the driver's buffer is that of the end."""

    def __init__(self, end: SerialEnd, loop: AbstractEventLoop) -> None:
        super().__init__(end.open(loop))
        self._end = end

    def write(self, data: bytes) -> int:
        count = super().write(data)
        self._end.driver_bytes += count
        return count

    def waiting(self) -> int:
        return self._end.waiting()


class SimulatedUart(UartLink):
    """A `UartLink` whose device is one end of a simulated line; the rest is the real link."""

    def __init__(self, end: SerialEnd, **options: Any) -> None:
        uart, rest = settings(end.line, Uart, options, port=end.name, baud=end.line.baud)
        super().__init__(uart, **rest)
        self.end = end

    def _open_device(self) -> "SerialPort":
        return SerialPort(self.end, self._loop)


class SpokenUart(UartSpoken):
    """A `UartSpoken` whose device is one end of a simulated line; the rest is the real link."""

    def __init__(self, end: SerialEnd, protocol: Protocol, **options: Any) -> None:
        uart, rest = settings(end.line, Uart, options, port=end.name, baud=end.line.baud)
        super().__init__(uart, protocol, **rest)
        self.end = end

    def _open_port(self) -> "SerialPort":
        return SerialPort(self.end, self._loop)
