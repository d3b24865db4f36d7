"""Every listener of the product, opened in a process that has few descriptors, for `test_listeners`.

Run as a program with a directory: it reads the name of a listener a line, opens it, and prints its address as
JSON; an empty line closes it. `exhaust` takes all descriptors that are left; `release` gives them back.
"""

import asyncio
import json
import logging
import os
import resource
import sys
from asyncio import AbstractEventLoop, StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from appliance.local.responder import Responder
from appliance.status.view import View
from appliance.web.guard import Guard
from appliance.web.server import Server as Page
from bridges.media.tcp.link import tcp_link
from bridges.media.tcp.medium import Tcp
from bridges.protocols.lines.protocol import Lines
from bus.errors import words_of
from bus.hub import Hub, Pipe
from bus.serving.limits import Limits
from bus.serving.streams import StreamListener
from bus.tmq.broker import Broker
from bus.tmq.client import Client as TmqClient
from bus.tmq.wire import Hello, pack_hello
from bus.transports.listening import ListenLink
from bus.transports.options import Tls
from bus.transports.seats import Seat
from bus.transports.secure import context
from bus.transports.sockets import Acceptor
from bus.wire.batch import Batch
from bus.wire.frame import pack
from bus.wire.sp import HANDSHAKE
from devices.dbp.catalog.bounds import Bounds as CatalogBounds
from devices.dbp.catalog.server import Server as Catalog
from devices.dbp.proxy.crossing import Listening
from devices.dbp.proxy.tunnel import CLIENTS_MAX
from devices.dbp.zeromq import zmtp
from devices.dbp.zeromq.sockets import Socket
from devices.syndication.bounds import Bounds as SyndicationBounds
from devices.syndication.server import Server as Syndication

DESCRIPTORS = 256
HOST = "127.0.0.1"
FRAME = pack(2, (1, 2), b"x")
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: bus.sp.nanomsg.org\r\n\r\n"
)
ZMTP = zmtp.GREETING + zmtp.ready(zmtp.DEALER)
SUBSCRIBER = zmtp.GREETING + zmtp.ready(zmtp.SUB)
TMQ = pack_hello(Hello(7, 60_000))
QUERY = b"\1\x81\xa5Query\xa9has never"
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Opened(NamedTuple):
    """An open listener: (host, port), or the path of a local socket."""

    address: Any
    close: Callable[[], object]


Open = Callable[[AbstractEventLoop, Path], Opened]


class Kind(NamedTuple):
    """A listener: how it is opened, what completes its handshake, and how its answer begins.

    `is_secure`: TLS comes first, in which the client has a certificate too.
    """

    open: Open
    hello: bytes
    answer: bytes
    is_secure: bool = False


def tls_of(place: Path) -> Tls:
    """Return certificates for both ends."""
    return Tls(str(place / "ca.pem"), str(place / "own.pem"))


class _Echo(Hub):
    """A hub that says to each peer what it said, and to no other: what many say costs no more than that."""

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        if origin is not None:
            self.give(origin, batch)


def _on_bus(make: Callable[[Path], Any]) -> Open:
    def opened(loop: AbstractEventLoop, place: Path) -> Opened:
        hub, link = _Echo(), make(place)
        link.open(hub, loop)
        scheme, _, where = link.url.partition("://")
        address = where if scheme == "ipc" else (HOST, int(where.rstrip("/").rpartition(":")[2]))
        return Opened(address, link.close)

    return opened


def _listen(url: str, secure: bool = False) -> Open:
    return _on_bus(
        lambda place: ListenLink(url.replace("PLACE", str(place)), tls=tls_of(place) if secure else None)
    )


def _lines(_: Path) -> Any:
    """Make a side whose peers say lines, and hear them again."""
    return Tcp(host=HOST, port=0, mode="listen").speaking(Lines(receive=("said",), send=("said",)))


def _broker(scheme: str) -> Open:
    def opened(loop: AbstractEventLoop, place: Path) -> Opened:
        url = f"{scheme}://{HOST}:0"
        broker = Broker(url, tls={url: tls_of(place)} if "tls" in scheme else {})
        broker.open(loop)
        return Opened(broker.addresses[0], broker.close)

    return opened


def _tmq_client(loop: AbstractEventLoop, _: Path) -> Opened:
    client = TmqClient([(HOST, 1)], listen=(HOST, 0))
    client.open(loop)
    return Opened(client.address, client.close)


def _catalog(loop: AbstractEventLoop, _: Path) -> Opened:
    made = Catalog("catalog", CatalogBounds(), False, lambda: None)
    made.open(loop, [(HOST, 0)])
    return Opened(made.addresses[0], made.close)


def _zeromq(kind: Any) -> Open:
    def opened(loop: AbstractEventLoop, _: Path) -> Opened:
        made = Socket(kind, lambda _: None)
        made.open(loop)
        return Opened((HOST, made.bind(HOST, 0)), made.close)

    return opened


def _syndication(loop: AbstractEventLoop, _: Path) -> Opened:
    made = Syndication("syndication", SyndicationBounds(), Limits())
    made.open(loop, [(HOST, 0)])
    made.accept()
    return Opened(made.addresses[0], made.close)


def _page(secure: bool) -> Open:
    def opened(loop: AbstractEventLoop, place: Path) -> Opened:
        tls = context("https://", tls_of(place), True) if secure else None
        made = Page(View(program="run", name="plant"), Guard(["plant"]), tls)
        return Opened((HOST, made.open(Acceptor(0, (HOST, 0)), loop, _fail)), made.close)

    return opened


def _fail(error: OSError) -> None:
    logging.getLogger("listeners").warning("cannot accept: %s", words_of(error))


async def _greet(reader: StreamReader, writer: StreamWriter, seat: Seat | None = None) -> str:
    writer.write(b"hello")
    if seat is not None:
        seat.meet()
    await reader.read()
    return "gone"


def _crossing(loop: AbstractEventLoop, place: Path) -> Opened:
    made = Listening(f"tls+tcp://{HOST}:0", tls_of(place), _greet)
    loop.run_until_complete(made.run())
    return Opened((HOST, int(made.url.rpartition(":")[2])), made.close)


def _streams(loop: AbstractEventLoop, _: Path) -> Opened:
    """Open such a listener as a service of the far side of a proxy has."""
    made = StreamListener(_greet, lambda: CLIENTS_MAX, lambda _: None)
    return Opened(made.open(loop, Acceptor(0, (HOST, 0)), _fail), made.close)


def _responder(loop: AbstractEventLoop, place: Path) -> Opened:
    async def answer(reader: StreamReader) -> bytes:
        return b"answer to " + await reader.readline()

    made = Responder(place / "local" / "status.sock", answer, "")
    loop.run_until_complete(made.open())
    return Opened(str(made.path), made.close)


KINDS: dict[str, Kind] = {
    "bus at tcp": Kind(_listen("tcp://127.0.0.1:0"), HANDSHAKE, HANDSHAKE),
    "bus at ipc": Kind(_listen("ipc://PLACE/bus"), HANDSHAKE, HANDSHAKE),
    "bus at tls+tcp": Kind(_listen("tls+tcp://127.0.0.1:0", True), HANDSHAKE, HANDSHAKE, True),
    "bus at ws": Kind(_listen("ws://127.0.0.1:0/"), UPGRADE, b"HTTP/1.1 101"),
    "bus at wss": Kind(_listen("wss://127.0.0.1:0/", True), UPGRADE, b"HTTP/1.1 101", True),
    "tcp side": Kind(_on_bus(lambda _: tcp_link(Tcp(host=HOST, port=0, mode="listen"))), FRAME, FRAME),
    "tcp side with lines": Kind(_on_bus(_lines), b"hi\n", b"hi\n"),
    "broker": Kind(_broker("tcp"), TMQ, b"\x10"),
    "broker at tls+tcp": Kind(_broker("tls+tcp"), TMQ, b"\x10", True),
    "client of a broker": Kind(_tmq_client, TMQ, b"\x10"),
    "catalog": Kind(_catalog, ZMTP, zmtp.GREETING),
    "requests of a service": Kind(_zeromq("router"), ZMTP, zmtp.GREETING),
    "publications of a service": Kind(_zeromq("pub"), SUBSCRIBER, zmtp.GREETING),
    "mirror": Kind(_zeromq("xpub"), SUBSCRIBER, zmtp.GREETING),
    "syndication": Kind(_syndication, QUERY, b"\x02"),
    "status page": Kind(_page(False), GET, b"HTTP/1.1 200"),
    "status page at https": Kind(_page(True), GET, b"HTTP/1.1 200", True),
    "proxy": Kind(_crossing, b"", b"hello", True),
    "service of a proxy": Kind(_streams, b"", b"hello"),
    "local socket": Kind(_responder, b"status\n", b"answer to status"),
}
"""Every kind of listener."""


def main(place: Path) -> None:
    """Open what standard input asks for, one listener at a time."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    os.environ["XDG_RUNTIME_DIR"] = str(place)
    loop = asyncio.new_event_loop()
    opened: list[Opened] = []
    taken: list[int] = []

    def obey() -> None:
        match sys.stdin.readline().strip():
            case "":
                loop.stop()
            case "exhaust":
                with suppress(OSError):
                    while True:
                        taken.append(os.dup(0))
            case "release":
                while taken:
                    os.close(taken.pop())
        print("done", flush=True)

    for line in iter(sys.stdin.readline, ""):
        opened.append(KINDS[line.strip()].open(loop, place))
        print(json.dumps(opened[-1].address), flush=True)
        loop.add_reader(0, obey)
        loop.run_forever()
        loop.remove_reader(0)
        opened.pop().close()
        loop.run_until_complete(asyncio.sleep(0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
