"""Each medium counts what comes and is no message, tells it till messages come, and says what a peer said."""

import asyncio
import os
import socket
from asyncio import StreamReader, StreamWriter, get_running_loop
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from bridges.media.i2c.memory import MemoryAdapter
from bridges.media.medium import Medium
from bridges.media.multicast.datagram import with_crc
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.codec import encode
from bridges.media.uart.medium import Uart
from bridges.media.udp.medium import Udp
from bridges.protocols.cannelloni.protocol import Cannelloni
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.modbus.protocol import Modbus, Register
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.p1.protocol import P1
from bridges.protocols.protocol import Protocol
from bridges.protocols.queries.protocol import Queries, Query
from bridges.protocols.slip.protocol import Slip
from bridges.protocols.vedirect.protocol import VeDirect
from bridges.protocols.xbee.protocol import Xbee
from bus.hub import Hub, Link
from bus.ledger import Stats
from bus.transports.dialling import DialLink
from bus.transports.listening import ListenLink
from bus.transports.options import Tls
from tests.bridges.media.i2c.i2c_support import QUICK as I2C_QUICK
from tests.bridges.support import MESSAGE, PtyPair, recorder
from tests.helpers.certificates import own_tls
from tests.helpers.links import i2c_link, multicast_link, rs485_link, tcp_link, uart_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

TEXT = b"Hello from another device at another speed!\r\n" * 80  # more than a message takes, and no zero
QUICK: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.02}
BUSY = b"Port already in use\r\n"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return own_tls(tmp_path_factory.mktemp("tls"))


@contextmanager
def opened(link: Link, hub: Hub) -> Iterator[None]:
    link.open(hub, get_running_loop())
    try:
        yield
    finally:
        link.close()


def counted(hub: Hub) -> Stats:
    """Return the sum of all links of a hub but the recorder's."""
    total = Stats()
    for link, account in hub.accounts().items():
        if link:
            total.add(account.stats)
    return total


def put(line: PtyPair, data: bytes) -> None:
    while data:
        data = data[os.write(line.master, data[:1000]) :]


SERIAL: dict[str, Callable[[str], Any]] = {
    "uart": lambda port: uart_link(port, **QUICK),
    "uart with echo": lambda port: uart_link(port, echo=True, **QUICK),
    "rs485": lambda port: rs485_link(port, **QUICK),
}


@pytest.mark.parametrize("kind", list(SERIAL))
async def test_on_a_serial_line(kind: str, line: PtyPair, caplog: pytest.LogCaptureFixture) -> None:
    hub = Hub()
    heard = recorder(hub)
    link = SERIAL[kind](str(line.path))
    with opened(link, hub):
        await until(lambda: link.state == "up")
        put(line, TEXT)
        await until(lambda: link.stats.noise_bytes == len(TEXT))
        assert link.condition.endswith("): `protocol: lines`?")
        assert link.stats.rejected == {"oversize": 1}
        put(line, b"\0" + TEXT[:500] + b"\0")
        put(line, encode(MESSAGE))
        await until(lambda: heard.messages == [MESSAGE])
        assert link.condition == ""
        put(line, b"\0half")
        await until(lambda: link.pipe is not None and link.pipe._decoder.waiting == 4)  # noqa: SLF001
    assert link.stats.noise_bytes == len(TEXT) + 500 + 4
    assert link.stats.rejected["unfinished"] == 1
    assert caplog.text.count("none a frame") == 1


async def test_a_program_that_takes_the_bytes_of_a_tty_does_not_end_the_link(line: PtyPair) -> None:
    link = uart_link(str(line.path), **QUICK)
    with opened(link, Hub()):
        await until(lambda: link.state == "up")
        pipe: Any = link.pipe
        for _ in range(3):
            pipe._on_readable()  # noqa: SLF001
        assert (link.state, link.losses) == ("up", 0)
        line.unplug()
        await until(lambda: link.losses == 1)


@asynccontextmanager
async def server(said: bytes, stays: bool = False) -> AsyncIterator[tuple[int, list[StreamWriter]]]:
    """Serve at a port: say something to each client, and hang up unless it `stays`."""
    clients: list[StreamWriter] = []

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        clients.append(writer)
        writer.write(said)
        if not stays:
            writer.write_eof()
        await reader.read()
        writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", free_port())
    try:
        yield made.sockets[0].getsockname()[1], clients
    finally:
        made.close()
        for client in clients:
            client.close()


SPOKEN: list[tuple[Protocol, str]] = [
    (Nmea(), "no sentence"),
    (JsonLines(), "no json"),
    (Slip(), "unfinished"),
    (Xbee(), "no start"),
    (VeDirect(), "unfinished"),
    (P1(), "unfinished"),
    (Modbus(registers=(Register(register=0, pattern=("p",)),)), ""),
    (Queries(queries=(Query(ask="W", pattern=("p",)),)), "unasked"),
]
CARRIERS: dict[str, Callable[[int], Medium]] = {
    "socket": lambda port: Uart(port=f"socket://127.0.0.1:{port}"),
    "tcp": lambda port: Tcp(host="127.0.0.1", port=port),
}


def spoken(medium: Callable[[int], Medium], protocol: Protocol) -> Callable[[int], Any]:
    """Return what makes a link with a protocol to a port."""
    return lambda port: medium(port).speaking(protocol, **QUICK)


DIALLED: dict[str, tuple[Callable[[int], Any], str]] = {
    "socket": (lambda port: uart_link(f"socket://127.0.0.1:{port}", **QUICK), "unfinished"),
    "rfc2217": (lambda port: uart_link(f"rfc2217://127.0.0.1:{port}", **QUICK), ""),
    "cobs": (
        lambda port: tcp_link("127.0.0.1", port, framing="cobs", **QUICK),
        "unfinished",
    ),
    "frames": (lambda port: tcp_link("127.0.0.1", port, **QUICK), "framing"),
    "bus": (lambda port: DialLink(f"tcp://127.0.0.1:{port}", **QUICK), "handshake"),
    **{
        f"{protocol.key} {carrier}": (spoken(medium, protocol), reason)
        for protocol, reason in SPOKEN
        for carrier, medium in CARRIERS.items()
    },
}


@pytest.mark.parametrize("kind", list(DIALLED))
async def test_what_a_server_says_before_it_hangs_up_is_in_the_fault(kind: str) -> None:
    make, reason = DIALLED[kind]
    hub = Hub()
    async with server(BUSY) as (port, _):
        link = make(port)
        with opened(link, hub):
            await until(lambda: "Port already in use" in link.fault)
            assert "\r" not in link.fault
        assert "standby" not in counted(hub).rejected  # no other gateway asks there
        assert not reason or counted(hub).rejected[reason] >= 1
        assert not reason or counted(hub).noise_bytes >= len(BUSY.rstrip())


@pytest.mark.parametrize("protocol", ["modbus", "cannelloni"])
async def test_a_protocol_that_ends_a_connection_quotes_what_came_instead(protocol: str) -> None:
    spoken_there: Protocol = Modbus(registers=(Register(register=0, pattern=("p",)),))
    if protocol == "cannelloni":
        spoken_there = Cannelloni()
    async with server(b"HTTP/1.0 400 Bad Request\r\nServer: another program\r\n", stays=True) as (port, _):
        link = Tcp(host="127.0.0.1", port=port).speaking(spoken_there, **QUICK)
        with opened(link, Hub()):
            await until(lambda: "it said: HTTP/1.0 400 Bad Request" in link.fault)


async def test_cobs_over_tcp_tells_noise_until_messages_come(caplog: pytest.LogCaptureFixture) -> None:
    hub = Hub()
    heard = recorder(hub)
    async with server(TEXT, stays=True) as (port, clients):
        link = tcp_link("127.0.0.1", port, framing="cobs", **QUICK)
        with opened(link, hub):
            await until(lambda: "none a frame" in link.condition)
            clients[0].write(b"\0" + encode(MESSAGE))
            await until(lambda: heard.messages == [MESSAGE])
            assert link.condition == ""
        assert counted(hub).noise_bytes == len(TEXT)
    assert caplog.text.count("none a frame") == 1


@pytest.mark.parametrize(
    ("said", "reason", "size"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "handshake", 18),
        (bytes.fromhex("0053500000700000") + b"\0" * 7 + b"\5abc", "unfinished", 11),
    ],
)
async def test_a_bus_counts_what_a_foreign_peer_says(said: bytes, reason: str, size: int) -> None:
    hub, link = Hub(), ListenLink("tcp://127.0.0.1:0")
    with opened(link, hub):
        with socket.create_connection(("127.0.0.1", int(link.url.rpartition(":")[2]))) as peer:
            peer.send(said)
            peer.shutdown(socket.SHUT_WR)
            await until(lambda: counted(hub).rejected == {reason: 1})
        assert counted(hub).noise_bytes == size


@pytest.mark.parametrize("scheme", ["tcp", "ws", "tls+tcp", "wss"])
@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("said", [b"", b"\0", b"GET", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_bus_counts_who_says_something_and_does_not_enter(
    scheme: str, stays: bool, said: bytes, tls: Tls
) -> None:
    secure = tls if scheme in ("tls+tcp", "wss") else None
    hub, link = Hub(), ListenLink(f"{scheme}://127.0.0.1:0", tls=secure, handshake_s=0.2)
    with opened(link, hub):
        with socket.create_connection(("127.0.0.1", int(link.url.rpartition(":")[2]))) as peer:
            await until(lambda: bool(link.pipes), passes=True)
            peer.send(said)
            if not stays:
                peer.shutdown(socket.SHUT_WR)
            await until(lambda: not link.pipes)
        assert counted(hub).rejected == ({"handshake": 1} if said else {})
        assert counted(hub).noise_bytes == len(said)


async def test_on_multicast(caplog: pytest.LogCaptureFixture) -> None:
    hub, group, port = Hub(), "239.255.91.8", free_port()
    heard = recorder(hub)
    link = multicast_link(group, port, "lo", **QUICK)
    with opened(link, hub), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        await until(lambda: link.state == "up")
        stranger.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for junk in [b"", b"short", b"something else that is long enough"] * 11:
            stranger.sendto(junk, (group, port))
        await until(lambda: "none a frame: another program on this group and port?" in link.condition)
        assert link.stats.rejected == {"short": 22, "crc": 11}
        stranger.sendto(with_crc(MESSAGE), (group, port))
        await until(lambda: heard.messages == [MESSAGE])
        assert link.condition == ""
    assert caplog.text.count("none a frame") == 1


@pytest.mark.parametrize(
    ("junk", "words"),
    [
        (b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47", "(GPGGA): `protocol: nmea`?"),
        (b'{"temp": 21.5}\r\n', "1 lines of JSON: `protocol: jsonl`?"),
        (b"TEMP=21.5\n", 'lines of text ("TEMP=21.5"): `protocol: lines`?'),
        (bytes(range(200, 220)), "another program on this port (bytes such as c8 c9 ca cb cc cd ce cf)?"),
        (b"\xc0ab\xc0ab\xc0ab\xc0", "another program on this port (bytes such as c0 61 62 c0 61 62 c0 61)?"),
    ],
)
async def test_on_udp_what_comes_is_shown_or_guessed_at(junk: bytes, words: str) -> None:
    own, other = free_port(), free_port()
    link = Udp(host="127.0.0.1", port=other, own_port=own).link(**QUICK)
    with opened(link, Hub()), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", other))
        await until(lambda: link.state == "up")
        for _ in range(32):
            stranger.sendto(junk, ("127.0.0.1", own))
        await until(lambda: link.condition != "")
        assert link.condition.endswith(words)


async def test_on_i2c_another_device_at_the_address(caplog: pytest.LogCaptureFixture) -> None:
    memory = MemoryAdapter([0x42, 0x43])
    memory.hung.add(0x43)
    link = i2c_link(1, (0x42, 0x43), adapter=memory.open, timing=I2C_QUICK, **QUICK)
    with opened(link, Hub()):
        await until(lambda: link.condition.startswith("0x43 answers, but serves no mailbox"))
        await until(lambda: link.targets[0x43].stats.rejected.get("unserved", 0) > 1)
        memory.hung.clear()
        await until(lambda: link.condition == "")
    assert caplog.text.count("serves no mailbox") == 1
