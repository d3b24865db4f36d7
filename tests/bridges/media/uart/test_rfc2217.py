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
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.codec import Decoder, encode
from bridges.media.uart.port import Rfc2217Port
from bridges.media.uart.rfc2217 import Client, escape
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, PtyPair, frame, recorder, say, until
from tests.helpers.links import uart_link

DO_COM_PORT = b"\xff\xfd\x2c"
DO_BINARY = b"\xff\xfd\x00"


def answer(command: int, value: bytes) -> bytes:
    return b"\xff\xfa\x2c" + bytes((command + 100,)) + escape(value) + b"\xff\xf0"


def agreed(baud: int = 115200) -> bytes:
    settings = ((1, baud.to_bytes(4, "big")), (2, b"\x08"), (3, b"\x01"), (4, b"\x01"))
    return DO_BINARY + DO_COM_PORT + b"".join(answer(command, value) for command, value in settings)


def test_negotiation_word_by_word() -> None:
    client = Client(115200)
    first = "ff fb 00 ff fb 03 ff fb 2c ff fd 00 ff fd 03"
    assert bytes(client.replies).hex(" ") == first
    client.replies.clear()
    assert client.feed(DO_BINARY + DO_COM_PORT) == b""
    assert bytes(client.replies).startswith(bytes.fromhex("fffa2c01 0001c200 fff0 fffa2c0208fff0"))
    assert not client.ready
    client.feed(agreed()[6:])
    assert client.ready


def test_agreement_is_not_answered_again() -> None:
    client = Client(115200)
    client.feed(agreed())
    client.replies.clear()
    client.feed(DO_BINARY + b"\xff\xfb\x00\xff\xfb\x03")
    assert client.replies == b""
    client.feed(b"\xff\xfb\x01\xff\xfb\x01\xff\xfd\x18\xff\xfb\x22")
    assert bytes(client.replies).hex(" ") == "ff fd 01 ff fc 18 ff fe 22"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"\xff\xfe\x2c", "refuses RFC 2217"),
        (b"\xff\xfe\x00", "refuses binary"),
        (DO_COM_PORT + answer(1, (9600).to_bytes(4, "big")), "baud rate 9600, not 115200"),
        (DO_COM_PORT + answer(3, b"\x02"), "parity 2, not 1"),
    ],
)
def test_refused(said: bytes, words: str) -> None:
    client = Client(115200)
    client.feed(said)
    assert words in client.refused
    assert not client.ready


def test_a_setting_that_holds_the_escape_byte() -> None:
    client = Client(0xFFFF00)
    client.feed(agreed(0xFFFF00))
    assert client.ready
    assert answer(-99, b"\x00\xff\xff\x00") in bytes(client.replies)


def test_suspended_and_resumed() -> None:
    client = Client(115200)
    client.feed(answer(8, b""))
    assert client.suspended
    client.feed(answer(9, b""))
    assert not client.suspended


@given(st.binary(max_size=300), st.lists(st.integers(1, 9)))
def test_cuts_change_nothing(data: bytes, steps: list[int]) -> None:
    stream = escape(data[:100]) + b"\xff\xf1" + answer(7, b"\xff\x01") + escape(data[100:])
    whole, cut = Client(9600), Client(9600)
    assert whole.feed(stream) == data
    found, position = b"", 0
    while position < len(stream):
        step = steps.pop() if steps else 1
        found += cut.feed(stream[position : position + step])
        position += step
    assert found == data


@given(st.lists(st.binary(max_size=900)))
def test_noise_never_raises_and_is_bounded(pieces: list[bytes]) -> None:
    client = Client(115200)
    for piece in pieces:
        client.feed(piece)
        assert len(client.replies) <= 4096
        assert len(client._held) <= 512 + 900  # noqa: SLF001


def test_an_endless_subnegotiation_is_given_up() -> None:
    client = Client(115200)
    client.feed(b"\xff\xfa" + b"x" * 600)
    assert client.feed(b"hello") == b"hello"


@given(
    st.lists(st.sampled_from(b"\xffa"), min_size=1, max_size=60).map(bytes),
    st.lists(st.integers(0, 5), min_size=1, max_size=50),
)
def test_an_escape_cut_in_two_is_finished(data: bytes, takes: list[int]) -> None:
    """However little the socket accepts, the wire carries the escaped bytes once and in order."""

    class Socket:
        wire = b""

        def setblocking(self, flag: bool) -> None:
            pass

        def send(self, data: bytes) -> int:
            size = takes.pop() if takes else 3
            self.wire += data[:size]
            return min(size, len(data))

    sock: Any = Socket()
    client = Client(115200)
    client.replies.clear()
    port, left = Rfc2217Port(sock, client), data + b"\0"
    while left:
        left = left[port.write(left) :]
    assert sock.wire == escape(data + b"\0")


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
