import logging
import socket
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridges.media.shedding import Shed
from bridges.media.tcp.link import TcpFramesLink
from bridges.media.tcp.link import tcp_link as link_of
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.codec import encode
from bus.backoff import Attempts
from bus.errors import LinkError
from bus.hub import Hub, Retrying
from bus.ledger import Stats
from tests.bridges.support import FRAME, MESSAGE, SIZES, frame, recorder, say
from tests.helpers.links import tcp_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port


@contextmanager
def opened(hub: Hub, port: int = 0, mode: Any = "listen", **options: Any) -> Iterator[TcpFramesLink]:
    link = tcp_link("127.0.0.1", port, mode, retry_min_s=0.01, retry_max_s=0.02, **options)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


def counts(hub: Hub) -> Stats:
    """Return the counts of all peers of the one link on `hub` so far."""
    found = [account.stats for name, account in hub.accounts().items() if name.startswith("tcp:127.0.0.1:")]
    return found[0] if found else Stats()


def port_of(link: TcpFramesLink) -> int:
    return int(link.url.rpartition(":")[2])


@contextmanager
def peer_of(link: TcpFramesLink) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port_of(link))) as sock:
        sock.setblocking(False)
        yield sock


async def read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = await get_running_loop().sock_recv(sock, size - len(data))
        assert part, "closed"
        data += part
    return data


@pytest.mark.parametrize("framing", ["frames", "cobs"])
async def test_both_ways(framing: str) -> None:
    here, there = Hub(), Hub()
    at_here, at_there = recorder(here), recorder(there)
    out = [frame(size, 1) for size in SIZES] + [frame(64, n) for n in range(500)]
    back = [frame(size, 2) for size in SIZES] + [MESSAGE] * 100
    with opened(here, framing=framing) as listening:
        with opened(there, port_of(listening), "dial", framing=framing) as dialling:
            await until(lambda: bool(dialling.pipes) and bool(listening.pipes))
            assert (listening.state, dialling.state) == ("up", "up")
            say(there, at_there, *out)
            say(here, at_here, *back)
            await until(lambda: len(at_here.messages) == len(out) and len(at_there.messages) == len(back))
            for hub, sent, received in ((there, out, back), (here, back, out)):
                stats = counts(hub)
                assert (stats.sent, stats.received, stats.balance()) == (len(sent), len(received), 0)
    assert (at_here.messages, at_there.messages) == (out, back)
    assert dialling.state == listening.state == "closed"


async def test_the_wire_is_bare_frames_and_peers_hear_each_other() -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(hub) as link, peer_of(link) as one, peer_of(link) as two:
        await until(lambda: len(link.pipes) == 2)
        one.sendall(FRAME + MESSAGE)
        assert await read(two, len(FRAME + MESSAGE)) == FRAME + MESSAGE
        two.sendall(FRAME)
        assert await read(one, len(FRAME)) == FRAME
    assert heard.messages == [FRAME, MESSAGE, FRAME]


async def test_a_header_in_pieces_and_a_pause_in_mid_frame() -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(hub) as link, peer_of(link) as one, peer_of(link) as two:
        for byte in MESSAGE:
            one.sendall(bytes((byte,)))
            await until(lambda: counts(hub).received == len(heard.messages))
            two.sendall(FRAME)
        await until(lambda: len(heard.messages) == 1 + len(MESSAGE))
    assert heard.messages.count(MESSAGE) == 1


async def test_lost_framing_closes_that_peer_and_nobody_else_notices(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(hub) as link, peer_of(link) as bad, peer_of(link) as good:
        await until(lambda: len(link.pipes) == 2)
        name = f"127.0.0.1:{bad.getsockname()[1]}"
        with caplog.at_level(logging.WARNING, "buscoupler"):
            bad.sendall(FRAME + b"\x01\x00\xff\xffGET / HTTP/1.1")
            await until(lambda: len(link.pipes) == 1)
        assert [name in line and "not a frame: 01 00 ff ff" in line for line in caplog.messages] == [True]
        assert name in link.fault
        good.sendall(MESSAGE)
        await until(lambda: heard.messages == [FRAME, MESSAGE])
        assert counts(hub).rejected == {"framing": 1}
        assert link.losses == 1


async def test_a_device_that_sends_no_frames_is_guessed_at() -> None:
    with opened(Hub()) as link, peer_of(link) as bad:
        bad.sendall(b"TEMP=21.5\r\nTEMP=21.6\r\n")
        await until(
            lambda: 'not a frame: 54 45 4d 50: lines of text ("TEMP=21.6"): `protocol: lines`?' in link.fault
        )


async def test_a_foreign_peer_is_told_with_its_words(caplog: pytest.LogCaptureFixture) -> None:
    with opened(Hub()) as link, peer_of(link) as bad, caplog.at_level(logging.WARNING, "buscoupler"):
        bad.sendall(b"HTTP/1.1 400 Bad Request\r\n")
        await until(
            lambda: link.fault.endswith("not a frame: 48 54 54 50; it said: HTTP/1.1 400 Bad Request")
        )


async def test_cobs_finds_its_way_back() -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(hub, framing="cobs") as link, peer_of(link) as one:
        one.sendall(b"\x05no" + encode(FRAME) + b"\x01\x00\xff\xff" + encode(MESSAGE))
        await until(lambda: heard.messages == [FRAME, MESSAGE])
        say(hub, heard, FRAME, bytes(4000))
        assert await read(one, len(encode(FRAME))) == encode(FRAME)
        assert counts(hub).dropped == {"oversize": 1}
        assert counts(hub).rejected == {"cobs": 2, "short": 1}
        assert len(link.pipes) == 1


async def test_what_is_no_frame_is_dropped() -> None:
    hub = Hub()
    with opened(hub) as link, peer_of(link) as one:
        await until(lambda: len(link.pipes) == 1)
        say(hub, None, b"", b"abc", FRAME + b"x", MESSAGE)
        say(hub, None, b"abc")
        assert await read(one, len(MESSAGE)) == MESSAGE
        assert counts(hub).dropped == {"malformed": 4}
        assert counts(hub).balance() == 0
        assert counts(hub).sent == 1


async def test_a_clogged_peer_stalls_nobody_and_every_drop_is_counted() -> None:
    hub = Hub()
    message = frame(3000)
    with opened(hub, queue_bytes=65536) as link, peer_of(link) as clogged, peer_of(link) as good:
        await until(lambda: len(link.pipes) == 2)
        by_name = {pipe.name.rpartition(":")[2]: pipe for pipe in link.pipes}
        stuck = by_name[str(clogged.getsockname()[1])]
        for n in range(4000):
            say(hub, None, message)
            if n % 10 == 9:
                assert await read(good, 10 * len(message)) == 10 * message
            assert stuck.stats.balance() == 0
            assert stuck.stats.queued_bytes <= 65536 + len(message)
            if stuck.stats.dropped.get("queue full", 0) > 100:
                break
        assert stuck.stats.dropped["queue full"] > 100
        assert "queue full" not in by_name[str(good.getsockname()[1])].stats.dropped
        assert [pipe.purge("fenced") for pipe in tuple(link.pipes)] == [[], []]
        assert stuck not in link.pipes  # bytes already framed cannot be taken back
        assert len(link.pipes) == 1
    assert counts(hub).dropped["closed"] > 0
    assert counts(hub).balance() == counts(hub).queued == counts(hub).queued_bytes == 0


async def test_dials_again_after_the_peer_has_gone_in_mid_frame() -> None:
    hub = Hub()
    heard = recorder(hub)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        with opened(hub, server.getsockname()[1], "dial") as link:
            for n in range(3):
                peer, _ = await get_running_loop().sock_accept(server)
                with peer:
                    peer.sendall(frame(100, n) + FRAME[:-3])
                    await until(lambda n=n: len(heard.messages) == n + 1)  # type: ignore[misc]
                await until(lambda n=n: link.losses == n + 1)  # type: ignore[misc]
    assert heard.messages == [frame(100, n) for n in range(3)]
    assert counts(hub).received == 3


async def test_a_peer_that_accepts_and_closes_is_dialled_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bus.transports.dialling.random.uniform", lambda *_: 0.01)
    paused, after = list[float](), Attempts.after

    def note(attempts: Attempts, lasted: bool) -> float:
        paused.append(after(attempts, lasted))
        return paused[-1]

    monkeypatch.setattr(Attempts, "after", note)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        link = tcp_link("127.0.0.1", server.getsockname()[1], retry_min_s=1, retry_max_s=8)
        link.open(Hub(), get_running_loop())
        for _ in range(5):
            peer, _ = await get_running_loop().sock_accept(server)
            peer.close()
        link.close()
    assert paused[:4] == [0.01, 0.02, 0.04, 0.08]


async def test_a_link_that_is_hurried_dials_at_once() -> None:
    port = free_port()
    link = link_of(Tcp(host="127.0.0.1", port=port), Shed(), retry_min_s=7200, retry_max_s=7200)
    link.open(Hub(), get_running_loop())
    await until(lambda: link.state == "waiting")
    with opened(Hub(), port):
        assert isinstance(link, Retrying)
        link.hurry()
        await until(lambda: link.state == "up")
        link.close()


async def test_nobody_there_is_a_state() -> None:
    hub, port = Hub(), free_port()
    with opened(hub, port, "dial") as link:
        await until(lambda: "cannot connect" in link.fault)
        assert link.state == "waiting"
        with opened(Hub(), port):
            await until(lambda: link.state == "up")


async def test_keepalive_no_delay_and_a_bound_on_silence() -> None:
    with opened(Hub(), silence_s=7) as link, peer_of(link):
        await until(lambda: len(link.pipes) == 1)
        (pipe,) = link.pipes
        sock = pipe._socket  # noqa: SLF001
        assert isinstance(sock, socket.socket)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7000


async def test_opened_and_closed_twice() -> None:
    hub = Hub()
    link = tcp_link("127.0.0.1", 0, "listen")
    for _ in range(2):
        link.open(hub, get_running_loop())
        with peer_of(link):
            await until(lambda: len(link.pipes) == 1)
        link.close()
        link.close()
    assert hub.pipes == ()
    dialling = tcp_link("127.0.0.1", 9, retry_min_s=0.01)
    for _ in range(2):
        dialling.open(hub, get_running_loop())
        await until(lambda: dialling.fault != "")
        dialling.close()


async def test_the_port_is_taken() -> None:
    with opened(Hub()) as link, pytest.raises(LinkError, match="cannot listen"):
        tcp_link("127.0.0.1", port_of(link), "listen").open(Hub(), get_running_loop())


async def test_too_many_peers() -> None:
    with opened(Hub(), peers=1) as link, peer_of(link), peer_of(link) as refused:
        assert await get_running_loop().sock_recv(refused, 1) == b""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "both"}, "dial or listen"),
        ({"framing": "sp"}, "frames or cobs"),
        ({"port": 0}, "port 0"),
        ({"port": 70000}, "port: 70000 is out of range"),
        ({"queue_bytes": 100}, "queue_bytes"),
        ({"silence_s": 0}, "silence_s"),
        ({"host": ""}, "is no host"),
        ({"host": "10.0.0.311"}, "is no host"),
        ({"host": "*"}, "not dialled"),
    ],
)
def test_what_can_never_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((LinkError, ValueError), match=words):
        tcp_link(**{"host": "127.0.0.1", "port": 9943, **options})
