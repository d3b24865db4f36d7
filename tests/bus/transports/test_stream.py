"""Stream links against hand-made peers: messages are forwarded, and bad peers do not affect others."""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bus.errors import LinkError
from bus.hub import Hub
from bus.machine.wake_hook import WakefulLoop
from bus.transports import stream
from bus.transports.chores import TURN_S
from bus.transports.dialling import DialLink
from bus.transports.framing import sp_framing
from bus.transports.links import make_link
from bus.transports.listening import ListenLink
from bus.transports.portion import BEGIN_BYTES
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.transports.stream_link import parse
from bus.wire.batch import Batch, from_payloads
from bus.wire.sp import HANDSHAKE
from tests.helpers.peers import Ear, SpPeer, until

to_thread = asyncio.to_thread


@pytest.fixture(params=["tcp", "ipc"])
async def listening(
    request: pytest.FixtureRequest, socket_path: Path
) -> AsyncIterator[tuple[Hub, ListenLink]]:
    url = "tcp://127.0.0.1:0" if request.param == "tcp" else f"ipc://{socket_path}"
    async with serving(url) as pair:
        yield pair


class serving:
    """Open a hub that listens on `url`, and close it after the block."""

    def __init__(self, url: str, **options: Any) -> None:
        self.hub, self.link = Hub(), ListenLink(url, **options)

    async def __aenter__(self) -> tuple[Hub, ListenLink]:
        self.link.open(self.hub, asyncio.get_running_loop())
        return self.hub, self.link

    async def __aexit__(self, *_: object) -> None:
        self.link.close()


@contextmanager
def peers(url: str, count: int) -> Iterator[list[SpPeer]]:
    made = [SpPeer(url) for _ in range(count)]
    try:
        yield made
    finally:
        for peer in made:
            peer.close()


async def test_all_but_the_sender_get_each_message_once(listening: tuple[Hub, ListenLink]) -> None:
    hub, link = listening
    with peers(link.url, 3) as (a, b, c):
        await until(lambda: len(hub.pipes) == 3)
        assert a.greeting() == HANDSHAKE
        b.greeting(), c.greeting()
        messages = [b"", b"x", bytes(300_000), b"end"]
        await to_thread(a.send, *messages)
        for peer in (b, c):
            assert [await to_thread(peer.receive) for _ in messages] == messages
        await to_thread(b.send, b"back")
        assert await to_thread(a.receive) == b"back"
        assert await to_thread(c.receive) == b"back"
        assert all(pipe.stats.balance() == 0 for pipe in hub.pipes)


async def test_tcp_and_ipc_are_one_bus(socket_path: Path) -> None:
    hub = Hub()
    links = [ListenLink("tcp://127.0.0.1:0"), ListenLink(f"ipc://{socket_path}")]
    for link in links:
        link.open(hub, asyncio.get_running_loop())
    with peers(links[0].url, 1) as (a,), peers(links[1].url, 1) as (b,):
        await until(lambda: len(hub.pipes) == 2)
        a.greeting(), b.greeting()
        await to_thread(a.send, b"one", b"", b"two")
        assert [await to_thread(b.receive) for _ in range(3)] == [b"one", b"", b"two"]
        await to_thread(b.send, b"three")
        assert await to_thread(a.receive) == b"three"
    for link in links:
        link.close()


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\n",
        bytes.fromhex("0053500000100000"),
        bytes.fromhex("0153500000700000"),
        HANDSHAKE[:3],
    ],
)
async def test_a_bad_handshake_closes_that_peer_and_names_it(
    listening: tuple[Hub, ListenLink], greeting: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    hub, link = listening
    with peers(link.url, 2) as (a, b):
        await until(lambda: len(hub.pipes) == 2)
        a.greeting(), b.greeting()
        bad = SpPeer(link.url, greet=greeting)
        if len(greeting) < 8:
            bad.socket.shutdown(socket.SHUT_WR)
        assert await to_thread(bad.at_end)
        await until(lambda: len(link.pipes) == 2)
        await to_thread(a.send, b"still here")
        assert await to_thread(b.receive) == b"still here"
        bad.close()
    assert link.url in caplog.text


async def test_peers_that_come_and_go_are_normal_life_and_one_cause(
    listening: tuple[Hub, ListenLink], caplog: pytest.LogCaptureFixture
) -> None:
    _, link = listening
    with caplog.at_level(logging.INFO):
        for greet in (HANDSHAKE, b""):
            with closing(SpPeer(link.url, greet)) as peer:
                await until(lambda: link.pipes)
                await to_thread(peer.greeting)
                await until(lambda g=greet: not g or any(pipe.ready for pipe in link.pipes))  # type: ignore[misc]
            await until(lambda: not link.pipes)
    told = [(record.levelno, record.__dict__["cause"]) for record in caplog.records]
    came, left = f"{link.name}: connected", f"{link.name}: closed by the peer"
    assert told == [(logging.INFO, cause) for cause in (came, left, left)]
    assert link.fault == ""


async def test_a_silent_peer_is_closed_after_the_time_limit() -> None:
    async with serving("tcp://127.0.0.1:0", handshake_s=0.01) as (hub, link):
        silent = SpPeer(link.url, greet=b"")
        assert await to_thread(silent.at_end)
        await until(lambda: not link.pipes)
        assert not hub.pipes
        silent.close()


async def test_a_handshake_in_pieces(listening: tuple[Hub, ListenLink]) -> None:
    hub, link = listening
    peer = SpPeer(link.url, greet=b"")
    for i in range(8):
        peer.socket.sendall(HANDSHAKE[i : i + 1])
        await asyncio.sleep(0)
    await until(lambda: hub.pipes)
    peer.close()


@pytest.mark.parametrize("size", [1 << 63, (1 << 20) + 1])
async def test_an_impossible_length_closes_that_peer_only(
    listening: tuple[Hub, ListenLink], size: int
) -> None:
    hub, link = listening
    with peers(link.url, 3) as (a, b, bad):
        await until(lambda: len(hub.pipes) == 3)
        for peer in (a, b, bad):
            peer.greeting()
        await to_thread(bad.socket.sendall, bad.lead + size.to_bytes(8, "big"))
        assert await to_thread(bad.at_end)
        await to_thread(a.send, b"on")
        assert await to_thread(b.receive) == b"on"


async def test_a_peer_reset_during_a_write_harms_nobody(listening: tuple[Hub, ListenLink]) -> None:
    hub, link = listening
    ear = Ear(hub)
    with peers(link.url, 2) as (stays, dies):
        await until(lambda: len(hub.pipes) == 3)
        stays.greeting(), dies.greeting()
        pipe = next(iter(link.pipes - {_pipe_of(link, stays)}))
        dies.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ear.say(bytes(2_000_000)[:900_000])
        dies.close()
        for _ in range(3):
            ear.say(b"after")
        await until(lambda: len(hub.pipes) == 2)
        assert [len(await to_thread(stays.receive)) for _ in range(4)] == [900_000, 5, 5, 5]
        assert pipe.stats.balance() == 0
        assert pipe.stats.offered >= 1


def _pipe_of(link: ListenLink, peer: SpPeer) -> StreamPipe:
    """Return the link's pipe of a peer; over IPC any one, because peers have no names there."""
    name = peer.socket.getsockname()
    wanted = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
    return next(pipe for pipe in link.pipes if wanted in pipe.name)


@pytest.mark.parametrize("ipc", [False, True])
async def test_a_queue_as_small_as_a_message_takes_the_longest_one(ipc: bool) -> None:
    """Its length stands before it in the queue, and has room beside it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        pipe = StreamPipe(
            ours, "stuck", sp_framing(5000, ipc), Bounds(5000), Calls(lambda *_: None, lambda _: None)
        )
        pipe.start(asyncio.get_running_loop(), 5.0)
        with suppress(BlockingIOError):
            while True:  # nothing more goes out at once
                ours.send(bytes(1 << 16))
        pipe.send(from_payloads([bytes(5000)]))
        pipe.send(from_payloads([b""]))
        assert pipe.purge("test") == [bytes(5000)]
        assert pipe.stats.dropped == {"queue full": 1, "test": 1}
        pipe.close()


async def test_a_peer_that_stops_reading_loses_whole_messages_counted_one_by_one() -> None:
    async with serving("tcp://127.0.0.1:0", queue_bytes=1 << 20, message_bytes=1 << 20) as (hub, link):
        ear = Ear(hub)
        with peers(link.url, 1) as (stuck,):
            await until(lambda: len(hub.pipes) == 2)
            (pipe,) = link.pipes
            for _ in range(400):
                ear.say(*[bytes(1000)] * 50)
            stats = pipe.stats
            assert stats.offered == 20_000
            assert stats.dropped["queue full"] % 50 == 0
            assert stats.dropped["queue full"] > 0
            assert stats.queued_bytes <= 1 << 20
            assert stats.balance() == 0
            stuck.greeting()
            arriving = stats.sent + stats.queued
            got = [await to_thread(stuck.receive) for _ in range(arriving)]
            assert set(map(len, got)) == {1000}
            await until(lambda: not stats.queued)
            assert stats.balance() == 0


async def test_what_waits_for_longer_than_its_age_is_dropped_and_what_is_younger_goes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, late_s = asyncio.get_running_loop(), 0.0
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + late_s)
    async with serving("tcp://127.0.0.1:0", age_s=4.0) as (hub, link):
        ear = Ear(hub)
        with peers(link.url, 1) as (stuck,):
            await until(lambda: len(hub.pipes) == 2)
            (pipe,) = link.pipes
            while pipe.stats.queued < 5:
                ear.say(bytes(1 << 18))
            late_s = 5.0
            ear.say(b"young")
            assert pipe.stats.dropped["stale"] >= 4
            assert pipe.stats.balance() == 0
            stuck.greeting()
            while (message := await to_thread(stuck.receive)) != b"young":
                assert len(message) == 1 << 18
            assert sum(pipe.stats.dropped.values()) == pipe.stats.dropped["stale"]


def test_after_a_standstill_a_trunk_begins_anew_and_reads_nothing_old() -> None:
    with closing(WakefulLoop()) as loop:
        now_s = 0.0
        loop.time = lambda: now_s  # type: ignore[method-assign]
        hub, link = Hub(), ListenLink("tcp://127.0.0.1:0", age_s=4.0)
        link.open(hub, loop)
        heard = Ear(hub)
        with peers(link.url, 1) as (peer,):
            while len(hub.pipes) < 2:
                loop.run_until_complete(asyncio.sleep(0))
            peer.send(b"old")
            now_s = 4.5
            loop.run_until_complete(asyncio.sleep(0))
            assert (heard.heard, link.pipes, link.losses) == ([], set(), 1)
            assert "stood still for 4.5 s" in link.fault
        link.close()


async def test_closing_with_a_queue_counts_it_as_dropped() -> None:
    async with serving("tcp://127.0.0.1:0") as (hub, link):
        ear = Ear(hub)
        with peers(link.url, 1):
            await until(lambda: len(hub.pipes) == 2)
            (pipe,) = link.pipes
            for _ in range(100):
                ear.say(bytes(1 << 17))
            pipe.close()
            pipe.close()
            assert pipe.stats.queued == 0
            assert pipe.stats.dropped["closed"] > 0
            assert pipe.stats.balance() == 0


async def test_a_dialled_bus_comes_and_goes_and_its_going_is_a_warning(
    socket_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop, url = asyncio.get_running_loop(), f"ipc://{socket_path}"
    near, far = Hub("near"), Hub("far")
    dial = DialLink(url, retry_min_s=0.001, retry_max_s=0.01)
    dial.open(near, loop)
    near_ear, far_ear = Ear(near), Ear(far)
    for round_ in range(3):
        listen = ListenLink(url)
        listen.open(far, loop)
        await until(lambda: len(near.pipes) == 2 and len(far.pipes) == 2)
        near_ear.say(b"%d" % round_)
        far_ear.say(b"back")
        await until(lambda n=round_: len(far_ear.heard) > n and len(near_ear.heard) > n)  # type: ignore[misc]
        listen.close()
        listen.close()
        await until(lambda: len(near.pipes) == 1)
    assert far_ear.heard == [b"0", b"1", b"2"]
    closed = [record.levelno for record in caplog.records if ": closed by" in record.getMessage()]
    assert closed == [logging.WARNING] * 3
    dial.close()
    dial.close()


async def test_a_taken_port_and_a_stale_socket_file(socket_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with serving("tcp://127.0.0.1:0") as (hub, link):
        with pytest.raises(LinkError, match="in use"):
            ListenLink(link.url).open(hub, loop)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(socket_path))
    stale.close()
    async with serving(f"ipc://{socket_path}") as (hub, _):
        with pytest.raises(LinkError, match="in use"):
            ListenLink(f"ipc://{socket_path}").open(hub, loop)


async def test_a_socket_file_that_another_has_taken_over_stays(socket_path: Path) -> None:
    async with serving(f"ipc://{socket_path}"):
        socket_path.unlink()
        other = socket.socket(socket.AF_UNIX)
        other.bind(str(socket_path))
    assert socket_path.exists()
    other.close()


@pytest.mark.parametrize(
    "url",
    [
        "tcp://127.0.0.1",
        "tcp://:5",
        "tcp://h:99999",
        "tcp://a..b:5",
        "tcp://10.0.0.311:5",
        "udp://h:1",
        "ipc://",
        "ipc://" + "x" * 120,
        "5555",
    ],
)
def test_bad_urls_are_refused_by_name(url: str) -> None:
    with pytest.raises(LinkError) as info:
        make_link(url, "listen")
    assert url in str(info.value)


def test_addresses() -> None:
    assert parse("tcp://[::1]:80") == (0, ("::1", 80))
    assert parse("tcp://*:80") == (0, ("", 80))
    assert parse("ipc:///tmp/x") == (socket.AF_UNIX, "/tmp/x")


async def test_more_peers_than_allowed_are_refused() -> None:
    async with serving("tcp://127.0.0.1:0", peers=1) as (hub, link):
        with peers(link.url, 1):
            await until(lambda: hub.pipes)
            refused = SpPeer(link.url)
            assert await to_thread(refused.at_end)
            refused.close()


async def test_a_name_that_cannot_be_looked_up_is_told_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries = 0

    async def connect(_: asyncio.AbstractEventLoop) -> socket.socket:
        nonlocal tries
        tries += 1
        raise UnicodeError("label empty or too long")

    link = DialLink("tcp://host:5", connect=connect, retry_min_s=0.001, retry_max_s=0.001)
    link.open(Hub(), asyncio.get_running_loop())
    await until(lambda: tries > 2)
    assert link.fault == "cannot connect: label empty or too long"
    assert link.state == "waiting"
    assert caplog.text.count("will go on trying") == 1
    link.close()


async def test_a_read_of_many_small_messages_is_one_turn_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    spent_s, turns = 0.0, list[float]()

    def hear(batch: Batch, pipe: StreamPipe) -> None:
        nonlocal spent_s
        spent_s += 10e-6 * batch.count
        turns.append(10e-6 * batch.count)

    monkeypatch.setattr(stream, "thread_time", lambda: spent_s)
    near, far = socket.socketpair()
    near.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    pipe = StreamPipe(near, "peer", sp_framing(1 << 20), Bounds(1 << 20), Calls(hear, lambda _: None))
    pipe.start(asyncio.get_running_loop(), 5.0)
    sending = to_thread(far.sendall, HANDSHAKE + from_payloads([b"tiny"] * 40_000).keep())
    with closing(far):
        await sending
        await until(lambda: sum(turns) >= 0.4 - 1e-9)
        pipe.close()
    assert max(turns) <= 10e-6 * BEGIN_BYTES / 12
    assert max(turns[1:]) <= 2 * TURN_S


async def test_a_link_that_takes_over_a_shorter_longest_pause_dials_that_often() -> None:
    tried = list[float]()
    loop = asyncio.get_running_loop()

    async def connect(_: asyncio.AbstractEventLoop) -> socket.socket:
        tried.append(loop.time())
        raise ConnectionRefusedError

    link = DialLink("tcp://host:5", connect=connect, retry_min_s=0.001, retry_max_s=3600.0)
    link.open(Hub(), loop)
    await until(lambda: len(tried) >= 3)
    assert link.revise(DialLink("tcp://host:5", retry_min_s=0.001, retry_max_s=0.001))
    await until(lambda: len(tried) >= 30)
    link.close()
