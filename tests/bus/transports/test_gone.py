"""A peer that has gone: what it sent before is heard, although sending to it fails first."""

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridges.media.tcp.link import tcp_link
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.codec import encode
from bridges.media.uart.link import uart_link
from bridges.media.uart.medium import Uart
from bridges.protocols.lines.protocol import Lines
from bus.hub import Hub
from bus.transports.dialling import DialLink
from bus.transports.options import Tls
from bus.wire.batch import from_payloads
from bus.wire.frame import pack
from bus.wire.pattern import Pattern
from tests.helpers.certificates import own_tls
from tests.helpers.peers import until
from tests.helpers.talker import greeted, over_tls, send_whole

COUNT = 400
NAMES = Pattern("lines")
FRAME = pack(1, NAMES, b"x" * 90)
SP = struct.pack(">Q", len(FRAME)) + FRAME


def accepted(listener: socket.socket) -> socket.socket:
    return listener.accept()[0]


def by_bus(scheme: str) -> Callable[[int, Tls], Any]:
    return lambda port, tls: DialLink(f"{scheme}://127.0.0.1:{port}", tls=tls if scheme != "tcp" else None)


def stream(framing: Any) -> Callable[[int, Tls], Any]:
    return lambda port, _: tcp_link(Tcp(host="127.0.0.1", port=port, framing=framing))


def server(port: int, _: Tls) -> Any:
    return uart_link(Uart(port=f"socket://127.0.0.1:{port}"))


def spoken_server(port: int, _: Tls) -> Any:
    return Uart(port=f"socket://127.0.0.1:{port}").speaking(Lines(send=("lines",)))


CASES = {
    "tcp": (by_bus("tcp"), greeted, SP),
    "tls+tcp": (by_bus("tls+tcp"), greeted, SP),
    "frames": (stream("frames"), accepted, FRAME),
    "cobs": (stream("cobs"), accepted, encode(FRAME)),
    "uart": (server, accepted, encode(FRAME)),
    "lines": (spoken_server, accepted, b"x" * 90 + b"\n"),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_a_peer_sent_before_it_went_is_heard(name: str, tmp_path: Path) -> None:
    make, meet, message = CASES[name]
    hub, loop = Hub(), asyncio.get_running_loop()
    heard = 0

    def count(batch: Any, pipe: Any) -> None:
        nonlocal heard
        heard += batch.count if pipe is not None else 0

    with socket.create_server(("127.0.0.1", 0)) as listener:
        tls = own_tls(tmp_path)
        link = make(listener.getsockname()[1], tls)
        link.open(hub, loop)
        try:
            with over_tls(listener, tls) if name == "tls+tcp" else listener as served:
                with await asyncio.to_thread(meet, served) as peer:
                    await until(lambda: link.state == "up")
                    send_whole(peer, message * COUNT)
                    hub.taps += (count,)
                fail(hub)
                await until(lambda: link.losses > 0)
        finally:
            link.close()
    assert heard == COUNT


def fail(hub: Hub) -> None:
    """Send to a peer that has gone until that fails, and read nothing meanwhile."""
    for _ in range(100):
        hub.publish(from_payloads([pack(1, NAMES, b"y")]), None)
