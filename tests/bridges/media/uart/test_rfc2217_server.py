"""The RFC 2217 client against pyserial's own server, whose port is a pty."""

import os
import select
import socket
from asyncio import get_running_loop
from collections.abc import Iterator
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import serial
import serial.rfc2217

from bridges.media.uart.codec import Decoder, encode
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, PtyPair, frame, recorder, say
from tests.helpers.links import uart_link
from tests.helpers.peers import until


class _PtySerial(serial.Serial):  # type: ignore[misc, unused-ignore]
    """A serial port without modem lines, because a pty has none."""

    cts = dsr = ri = cd = False

    def _update_dtr_state(self) -> None:
        pass

    def _update_rts_state(self) -> None:
        pass


class Server:
    """pyserial's PortManager between one connection at a time and a serial port, as its example server."""

    def __init__(self, path: str) -> None:
        self._serial: Any = _PtySerial(path, timeout=0)
        self._listening: Any = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._stop, self._stopped = os.pipe()
        self._kick, self._kicked = os.pipe()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._listening, self._stop], (), ())
            if self._stop in ready:
                return
            connection, _ = self._listening.accept()
            with connection:
                if not self._talk(connection):
                    return

    def _talk(self, connection: socket.socket) -> bool:
        writer: Any = SimpleNamespace(write=connection.sendall)
        manager = serial.rfc2217.PortManager(self._serial, writer)
        while True:
            ready, _, _ = select.select([connection, self._serial, self._stop, self._kick], [], [])
            if self._stop in ready:
                return False
            if self._kick in ready:
                os.read(self._kick, 1)
                return True
            if self._serial in ready:
                connection.sendall(b"".join(manager.escape(self._serial.read(4096))))
            if connection in ready:
                data = connection.recv(4096)
                if not data:
                    return True
                self._write(b"".join(manager.filter(data)))

    def _write(self, data: bytes) -> None:
        while data:
            select.select([], [self._serial], [])
            data = data[os.write(self._serial.fileno(), data) :]

    def hang_up(self) -> None:
        os.write(self._kicked, b"x")

    def close(self) -> None:
        os.write(self._stopped, b"x")
        self._thread.join(10)
        self._serial.close()
        self._listening.close()
        for fd in (self._stop, self._stopped, self._kick, self._kicked):
            os.close(fd)


@pytest.fixture
def server(line: PtyPair) -> Iterator[Server]:
    served = Server(str(line.path))
    yield served
    served.close()


async def test_both_ways_through_pyserial_s_server(line: PtyPair, server: Server) -> None:
    hub, decoder, found = Hub(), Decoder(), list[bytes]()
    heard = recorder(hub)
    messages = [frame(size) for size in SIZES] + [b"\xff" * 400, bytes(400)]
    link = uart_link(f"rfc2217://127.0.0.1:{server.port}", 57600, retry_min_s=0.01, retry_max_s=0.02)
    link.open(hub, get_running_loop())
    await until(lambda: link.state == "up")
    say(hub, heard, *messages)

    def all_read() -> bool:
        found.extend(decoder.feed(line.read()))
        return len(found) == len(messages)

    await until(all_read)
    assert found == messages
    for message in messages:
        data = encode(message)
        expected = len(heard.messages) + 1
        os.write(line.master, data)
        await until(lambda expected=expected: len(heard.messages) == expected)  # type: ignore[misc]
    assert heard.messages == messages
    assert link.stats.balance() == 0
    link.close()


async def test_hung_up_and_dialled_again(line: PtyPair, server: Server) -> None:
    hub = Hub()
    heard = recorder(hub)
    link = uart_link(f"rfc2217://127.0.0.1:{server.port}", retry_min_s=0.01, retry_max_s=0.02)
    link.open(hub, get_running_loop())
    await until(lambda: link.state == "up")
    server.hang_up()
    await until(lambda: link.losses == 1)
    await until(lambda: link.state == "up")
    os.write(line.master, encode(MESSAGE))
    await until(lambda: heard.messages == [MESSAGE])
    link.close()


async def test_a_server_that_does_not_speak_it_is_a_state() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:
        plain.setblocking(False)
        link = uart_link(f"rfc2217://127.0.0.1:{plain.getsockname()[1]}")
        link.open(Hub(), get_running_loop())
        peer, _ = await get_running_loop().sock_accept(plain)
        with peer:
            peer.sendall(b"\xff\xfe\x2c")
            await until(lambda: link.state == "waiting")
            assert "refuses RFC 2217" in link.fault
        link.close()
