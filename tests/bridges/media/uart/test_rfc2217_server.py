"""The RFC 2217 client against pyserial's own server, whose port is a pty."""

import os
import socket
from asyncio import get_running_loop
from collections.abc import Iterator

import pytest

from bridges.media.uart.codec import Decoder, encode
from bus.hub import Hub
from tests.bridges.media.uart.rfc2217_server import Server
from tests.bridges.support import MESSAGE, SIZES, PtyPair, frame, recorder, say
from tests.helpers.links import uart_link
from tests.helpers.peers import until


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
            await until(lambda: link.state == "waiting", passes=True)
            assert "refuses RFC 2217" in link.fault
        link.close()
