"""A foreign program's words before it hangs up are in the fault, by whichever way it was dialled.

A serial server says so that another client has its port; a wrong port answers with the greeting of its own
protocol.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from bridges.media.can.medium import Can
from bridges.media.tmq.medium import Tmq
from bridges.media.uart.medium import Uart
from bus.hub import Hub, Link
from bus.serving.connection import Connection
from bus.tmq.wire import Cutter
from bus.transports.links import make_link
from bus.transports.options import Tls
from bus.transports.secure import Security
from bus.transports.sockets import connect_to
from devices.dbp.zeromq.sockets import Socket
from tests.helpers.peers import until

WORDS = b"Port already in use\r\n"
WAYS: dict[str, Callable[[int], Link]] = {
    "tcp": lambda port: make_link(f"tcp://127.0.0.1:{port}", "dial"),
    "tls": lambda port: make_link(f"tls+tcp://127.0.0.1:{port}", "dial"),
    "ws": lambda port: make_link(f"ws://127.0.0.1:{port}", "dial"),
    "wss": lambda port: make_link(f"wss://127.0.0.1:{port}", "dial"),
    "tmq": lambda port: Tmq(brokers=(f"tcp://127.0.0.1:{port}",)).link(),
    "uart": lambda port: Uart(port=f"socket://127.0.0.1:{port}", baud=9600).link(),
    "rfc2217": lambda port: Uart(port=f"rfc2217://127.0.0.1:{port}", baud=9600).link(),
    "slcan": lambda port: Can(
        interface="slcan", channel=f"socket://127.0.0.1:{port}", bitrate=500_000, node=1
    ).link(),
    "socketcand": lambda port: Can(
        interface="socketcand", channel="can0", options={"host": "127.0.0.1", "port": port}, node=1
    ).link(),
}


async def _busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(WORDS)
    with suppress(OSError):
        await writer.drain()
    writer.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # python-can leaves it open
@pytest.mark.parametrize("way", WAYS)
async def test_what_a_busy_server_says_is_told(way: str) -> None:
    async with await asyncio.start_server(_busy, "127.0.0.1", 0) as server:
        link = WAYS[way](server.sockets[0].getsockname()[1])
        link.open(Hub(), asyncio.get_running_loop())
        await until(lambda: "Port already in use" in link.fault, what=f"the words in {link.fault!r}")
        assert link.fault.isprintable()
        link.close()


async def test_what_is_said_in_place_of_tls_is_told_by_a_connection() -> None:
    """As to a gateway that dials a broker of leases."""
    loop, security = asyncio.get_running_loop(), Security("tls+tcp://127.0.0.1:1", Tls(), False)
    security.open()
    async with await asyncio.start_server(_busy, "127.0.0.1", 0) as server:
        sock = await connect_to(loop, socket.AF_INET, ("127.0.0.1", server.sockets[0].getsockname()[1]))
        made = Connection(loop, security.secure(sock), "far", Cutter(), lambda *_: None, lambda _: None)
        await until(lambda: made.closed)
        assert made.words == f"{made.fault} after: Port already in use"
        assert "Port" not in made.fault, "by which refused connections are counted"


async def test_what_no_zeromq_says_is_told() -> None:
    async with await asyncio.start_server(_busy, "127.0.0.1", 0) as server:
        sock = Socket("dealer", lambda _: None)
        sock.open(asyncio.get_running_loop())
        sock.connect("127.0.0.1", server.sockets[0].getsockname()[1])
        await until(lambda: "Port already in use" in sock.fault)
        sock.close()
