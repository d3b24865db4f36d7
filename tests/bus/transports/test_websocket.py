"""ws, wss and tls+tcp on our streams: strangers, browsers, slow peers, and NNG at either end."""

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pynng
import pytest

from bus.errors import LinkError
from bus.hub import Hub
from bus.transports.links import make_link
from bus.transports.listening import ListenLink
from bus.transports.options import Tls
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.transports.websocket import listening_framing
from bus.urls import split_url
from bus.wire.websocket.frames import CLOSE, FIN, MASKED, PING, PONG, TEXT, head
from tests.helpers.certificates import own_tls
from tests.helpers.peers import Ear, SpPeer, until
from tests.helpers.ports import free_port
from tests.helpers.web import WebPeer, request

to_thread = asyncio.to_thread
WS = "ws://127.0.0.1:0/bus"
URLS = (WS, "wss://127.0.0.1:0/bus", "tls+tcp://127.0.0.1:0")
MESSAGES = [b"", b"x", bytes(70_000), os.urandom(1 << 20), *[b"%d" % number for number in range(1000)]]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return own_tls(tmp_path_factory.mktemp("tls"))


@asynccontextmanager
async def serving(url: str, tls: Tls | None = None, **options: Any) -> AsyncIterator[tuple[Hub, ListenLink]]:
    """Open a hub that listens on `url`, and close it after the block."""
    hub, link = Hub(), ListenLink(url, tls=None if url.startswith("ws:") else tls, **options)
    link.open(hub, asyncio.get_running_loop())
    try:
        yield hub, link
    finally:
        link.close()


@contextmanager
def nng_socket(tls: Tls, mode: int) -> Iterator[pynng.Bus0]:
    """Return a plain socket of NNG."""
    own = Path(str(tls.cert_file)).read_text()
    config = (
        pynng.TLSConfig(mode, server_name="127.0.0.1", ca_files=[tls.ca_file])
        if mode == pynng.TLSConfig.MODE_CLIENT
        else pynng.TLSConfig(mode, own_key_string=own, own_cert_string=own)
    )
    with pynng.Bus0(
        tls_config=config, recv_timeout=20_000, recv_buffer_size=8192, send_buffer_size=8192
    ) as made:
        yield made


async def exchange(peer: pynng.Bus0, ear: Ear) -> None:
    ear.say(*MESSAGES)
    for message in MESSAGES:
        assert (await to_thread(peer.recv_msg)).bytes == message
    for message in MESSAGES:
        await to_thread(peer.send, message)
    await until(lambda: ear.heard == MESSAGES)


@pytest.mark.parametrize("url", [*URLS, "ws://127.0.0.1:0"])
async def test_a_socket_of_nng_dials_us(url: str, tls: Tls) -> None:
    async with serving(url, tls) as (hub, link):
        ear = Ear(hub)
        with nng_socket(tls, pynng.TLSConfig.MODE_CLIENT) as peer:
            await to_thread(peer.dial, link.url, block=True)
            await until(lambda: len(hub.pipes) == 2)
            await exchange(peer, ear)
            assert [pipe.stats.balance() for pipe in link.pipes] == [0]


@pytest.mark.parametrize(
    "url",
    [pytest.param(url, marks=[pytest.mark.websocket] * ("ws" in url)) for url in (*URLS, "ws://127.0.0.1:0")],
)
async def test_we_dial_a_socket_of_nng(url: str, tls: Tls) -> None:
    url = url.replace("127.0.0.1:0", f"127.0.0.1:{free_port()}")
    hub, link = Hub(), make_link(url, "dial", tls=None if url.startswith("ws:") else tls)
    ear = Ear(hub)
    with nng_socket(tls, pynng.TLSConfig.MODE_SERVER) as peer:
        peer.listen(url)
        link.open(hub, asyncio.get_running_loop())
        await until(lambda: len(hub.pipes) == 2)
        await exchange(peer, ear)
        link.close()
        await until(lambda: not peer.pipes)


@pytest.mark.parametrize("url", URLS)
async def test_many_that_connect_and_vanish_under_traffic_leave_nothing(url: str, tls: Tls) -> None:
    async with serving(url, tls) as (hub, link):
        ear = Ear(hub)
        ear.say(b"all is open")
        before, secure = len(os.listdir("/proc/self/fd")), not url.startswith("ws:")

        def vanish(number: int) -> None:
            sock = socket.create_connection(("127.0.0.1", int(link.url.split(":")[2].split("/")[0])))
            if secure:  # in the midst of the handshake
                sock.sendall(b"\x16\x03\x01\x02\x00\x01")
            else:
                sock.sendall(request(link.url))
                sock.recv(100)
            if number % 2:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

        for number in range(200):
            await to_thread(vanish, number)
            ear.say(bytes(3000))
        await until(lambda: not link.pipes)
        assert len(os.listdir("/proc/self/fd")) <= before  # of a test before, some may have been open
        assert hub.pipes == (ear,)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("said", [b"", b"GET /bus HTTP/1.1\r\nX: ", b"\x16\x03\x01\x02\x00\x01\x00"])
async def test_a_peer_that_is_silent_or_stops_half_way_is_closed(url: str, said: bytes, tls: Tls) -> None:
    async with serving(url, tls, handshake_s=0.05) as (hub, link):
        port = int(link.url.split(":")[2].split("/")[0])
        with closing(socket.create_connection(("127.0.0.1", port), 20)) as sock:
            sock.sendall(said)

            def ended() -> None:
                with suppress(ConnectionResetError):
                    while sock.recv(4096):
                        pass

            await to_thread(ended)
        await until(lambda: not link.pipes)
        assert not hub.pipes


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://evil.example", "403 Forbidden"),
        ("http://127.0.0.1:8000", "101 Switching Protocols"),
        ("https://panel.example", "101 Switching Protocols"),
    ],
)
async def test_a_page_of_another_host_is_refused_unless_it_is_listed(
    origin: str, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(WS, origins=("https://panel.example",)) as (hub, link):
        with closing(await to_thread(WebPeer, link.url, f"Origin: {origin}")) as peer:
            assert peer.answer == f"HTTP/1.1 {status}"
            if status.startswith("403"):
                assert await to_thread(peer.rest)
                assert not hub.pipes
                assert "to allow it, add that to origins" in caplog.text
            else:
                await until(lambda: hub.pipes)


async def test_other_origins_apply_from_the_next_page_on() -> None:
    async with serving(WS) as (hub, link):
        with closing(await to_thread(WebPeer, link.url)) as stays:
            await until(lambda: hub.pipes)
            assert link.revise(ListenLink(WS, origins=("http://new.example",)))
            with closing(await to_thread(WebPeer, link.url, "Origin: http://new.example")) as page:
                assert "101" in page.answer
                await until(lambda: len(hub.pipes) == 2)
                await to_thread(page.send, b"from a page")
                assert await to_thread(stays.receive) == b"from a page"


async def test_what_a_slow_peer_receives_is_what_the_ledger_says() -> None:
    """NNG dropped for such a peer and did not say so."""
    async with serving(WS, queue_bytes=1 << 20) as (hub, link):
        ear = Ear(hub)
        with closing(await to_thread(WebPeer, link.url, buffer_bytes=4096)) as slow:
            await until(lambda: len(hub.pipes) == 2)
            (pipe,) = link.pipes
            for number in range(30_000):
                ear.say(b"%06d" % number + bytes(200))
            stats = pipe.stats
            assert stats.offered == 30_000
            assert stats.dropped["queue full"] > 0
            assert stats.balance() == 0
            arriving = stats.sent + stats.queued
            heard = [int((await to_thread(slow.receive))[:6]) for _ in range(arriving)]
            await until(lambda: not stats.queued)
            ear.say(b"999999")
            assert await to_thread(slow.receive) == b"999999"
        assert heard == sorted(set(heard))
        assert len(heard) == 30_000 - stats.dropped["queue full"]


async def test_pings_are_answered_and_who_takes_its_leave_is_no_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(WS) as (hub, link):
        ear = Ear(hub)
        with closing(await to_thread(WebPeer, link.url)) as peer:
            await to_thread(peer.say, b"are you there", FIN | PING)
            assert await to_thread(peer.frame) == (FIN | PONG, b"are you there")
            await to_thread(peer.say, b"\x03\xe8bye", FIN | CLOSE)
            assert await to_thread(peer.frame) == (FIN | CLOSE, b"\x03\xe8")
            assert await to_thread(peer.rest) == b""
        await until(lambda: hub.pipes == (ear,))
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_pings_of_a_peer_that_reads_nothing_do_not_pile_up() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        framing = listening_framing(split_url(WS), 1000)
        pipe = StreamPipe(ours, "stuck", framing, Bounds(2000), Calls(lambda *_: None, lambda _: None))
        theirs.sendall(request(WS))
        pipe.start(asyncio.get_running_loop(), 5.0)
        assert pipe.ready
        with suppress(BlockingIOError):
            while True:  # nothing more goes out at once
                ours.send(bytes(1 << 16))
        ping = head(125, FIN | PING, MASKED) + bytes(4 + 125)
        for _ in range(100):
            theirs.sendall(ping)
            pipe.read()
        assert 2000 < pipe.queued_bytes < 2000 + 200
        pipe.close()


@pytest.mark.parametrize(("first", "size", "code"), [(FIN | TEXT, 5, 1003), (FIN | 2, 1001, 1009)])
async def test_a_peer_that_breaks_the_protocol_is_told_and_harms_nobody(
    first: int, size: int, code: int
) -> None:
    async with serving(WS, message_bytes=1000) as (hub, link):
        peers = [await to_thread(WebPeer, link.url) for _ in range(3)]
        await until(lambda: len(hub.pipes) == 3)
        await to_thread(peers[0].say, bytes(size), first)
        assert await to_thread(peers[0].frame) == (FIN | CLOSE, code.to_bytes(2, "big"))
        await until(lambda: len(hub.pipes) == 2)
        await to_thread(peers[1].send, b"unmoved")
        assert await to_thread(peers[2].receive) == b"unmoved"
        for peer in peers:
            peer.close()


@pytest.mark.parametrize("url", URLS[:2])
async def test_a_link_that_closes_takes_its_leave(url: str, tls: Tls) -> None:
    hub = Hub()
    async with serving(url, tls) as (_, link):
        dial = make_link(link.url, "dial", tls=tls if url.startswith("wss") else None)
        dial.open(hub, asyncio.get_running_loop())
        await until(lambda: hub.pipes and link.pipes)
        link.close()
        await until(lambda: not hub.pipes)
        assert dial.fault.endswith(": closed by the peer")
        dial.close()


async def test_all_transports_are_one_bus(tls: Tls) -> None:
    loop, hub = asyncio.get_running_loop(), Hub()
    links = [make_link(url, tls=tls if "s" in url.split(":")[0][1:] else None) for url in URLS]
    links.append(make_link("tcp://127.0.0.1:0"))
    for link in links:
        link.open(hub, loop)
    with (
        nng_socket(tls, pynng.TLSConfig.MODE_CLIENT) as one,
        nng_socket(tls, pynng.TLSConfig.MODE_CLIENT) as two,
    ):
        await to_thread(one.dial, links[2].url, block=True)
        await to_thread(two.dial, links[0].url, block=True)
        with closing(SpPeer(links[3].url)) as plain:
            await to_thread(plain.greeting)
            await until(lambda: len(hub.pipes) == 3)
            await to_thread(plain.send, b"from tcp", b"")
            for peer in (one, two):
                assert [(await to_thread(peer.recv_msg)).bytes for _ in range(2)] == [b"from tcp", b""]
            await to_thread(one.send, b"from tls")
            assert await to_thread(plain.receive) == await to_thread(two.recv) == b"from tls"
    for link in links:
        link.close()


async def test_a_dialer_says_what_is_wrong_with_the_other_side(tls: Tls, tmp_path: Path) -> None:
    stranger = own_tls(tmp_path)
    async with serving(URLS[1], stranger) as (_, link):
        loop = asyncio.get_running_loop()
        for url, words in (
            (link.url, "the certificate is refused"),
            (link.url.replace("wss", "ws"), "closed"),
        ):
            dial = make_link(url, "dial", retry_min_s=5, tls=tls if url.startswith("wss") else None)
            dial.open(Hub(), loop)
            await until(lambda dial=dial: dial.fault)  # type: ignore[misc]
            assert words in dial.fault
            dial.close()
    async with serving(WS) as (_, link):
        dial = make_link(link.url.replace("/bus", "/other"), "dial", retry_min_s=5)
        dial.open(Hub(), asyncio.get_running_loop())
        await until(lambda: dial.fault)
        assert "404" in dial.fault
        dial.close()


def test_a_link_without_the_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    make_link(WS)
    monkeypatch.setitem(sys.modules, "websockets.client", None)
    monkeypatch.delitem(sys.modules, "bus.wire.websocket.upgrade")
    monkeypatch.delitem(sys.modules, "bus.transports.websocket")
    monkeypatch.delattr("bus.transports.websocket")
    with pytest.raises(LinkError, match=r"ws://127.0.0.1:0/bus needs websockets: run .*install buscoupler"):
        make_link(WS)


@pytest.mark.parametrize("url", URLS[1:])
async def test_a_listener_without_a_certificate_is_refused_with_its_address(url: str) -> None:
    with pytest.raises(LinkError, match="needs cert_file") as caught:
        make_link(url).open(Hub(), asyncio.get_running_loop())
    assert url in str(caught.value)
