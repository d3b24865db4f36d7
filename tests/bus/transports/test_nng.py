"""The transport of NNG, inproc, as links of a hub, against plain pynng peers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import pynng
import pytest

from bus.errors import LinkError
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.transports.nng import NngLink
from bus.wire.batch import Batch, from_payloads, payloads
from tests.helpers.peers import Ear, until

_numbers = count()


@pytest.fixture
def url() -> str:
    return f"inproc://link{next(_numbers)}"


class Peer:
    """A plain pynng socket that dials or listens; `heard` holds the received messages."""

    def __init__(self, **options: Any) -> None:
        self.socket = pynng.Bus0(recv_buffer_size=8192, send_buffer_size=8192, **options)
        self._heard: list[bytes] = []
        self.joined: list[object] = []
        self.socket.add_post_pipe_connect_cb(self.joined.append)

    @property
    def heard(self) -> list[bytes]:
        while True:
            try:
                self._heard.append(self.socket.recv_msg(block=False).bytes)
            except pynng.TryAgain:
                return self._heard

    async def dial(self, url: str) -> None:
        await asyncio.to_thread(self.socket.dial, url, block=True)


@asynccontextmanager
async def listening(url: str, peers: int) -> AsyncIterator[tuple[Any, ...]]:
    """Open a hub with a listening link and `peers` dialed peers; yield when all are attached."""
    hub = Hub()
    link = NngLink(url, "listen")
    link.open(hub, asyncio.get_running_loop())
    others = [Peer(reconnect_time_min=5000) for _ in range(peers)]
    try:
        for number, peer in enumerate(others, start=1):
            await peer.dial(link.url)
            await until(partial(_has_pipes, hub, number))
        yield hub, link, *others
    finally:
        for peer in others:
            peer.socket.close()
        link.close()


def _has_pipes(hub: Hub, number: int) -> bool:
    return len(hub.pipes) == number


def balanced(pipes: tuple[Pipe, ...]) -> bool:
    return all(pipe.stats.balance() == 0 for pipe in pipes)


async def test_what_one_peer_says_reaches_all_others_once_and_never_itself(url: str) -> None:
    async with listening(url, 3) as (hub, _, a, b, c):
        ear = Ear(hub)
        for number in range(300):
            a.socket.send(b"a%d" % number)
        b.socket.send(b"b")
        expected = {b"a%d" % number for number in range(300)}
        await until(lambda: len(ear.heard) == 301 and len(b.heard) == 300 and len(c.heard) == 301)
        await until(lambda: len(a.heard) == 1)
        ear.say(b"last")
        await until(lambda: all(p.heard[-1] == b"last" for p in (a, b, c)))
        assert a.heard == [b"b", b"last"]
        assert b.heard == [*(b"a%d" % number for number in range(300)), b"last"]
        assert set(c.heard) == expected | {b"b", b"last"}
        assert len(c.heard) == 302
        received = sorted(pipe.stats.received for pipe in hub.pipes if pipe is not ear)
        assert received == [0, 1, 300]
        offered = sorted(pipe.stats.offered for pipe in hub.pipes if pipe is not ear)
        assert offered == [2, 301, 302]
        assert balanced(hub.pipes)


async def test_what_the_hub_says_reaches_every_peer_once(url: str) -> None:
    async with listening(url, 3) as (hub, _, *peers):
        ear = Ear(hub)
        ear.say(b"one", b"", b"two")
        ear.say(b"three")
        await until(lambda: all(len(peer.heard) == 4 for peer in peers))
        assert all(peer.heard == [b"one", b"", b"two", b"three"] for peer in peers)
        assert all(pipe.stats.sent == 4 for pipe in hub.pipes if pipe is not ear)
        assert balanced(hub.pipes)


async def test_empty_messages_and_long_ones_pass(url: str) -> None:
    async with listening(url, 2) as (hub, _, a, b):
        ear = Ear(hub)
        for message in (b"", bytes(2_000_000), b"end"):  # NNG passes a pointer, and does not check its size
            a.socket.send(message)
        await until(lambda: len(ear.heard) == 3 and len(b.heard) == 3)
        assert ear.heard == b.heard == [b"", bytes(2_000_000), b"end"]


async def test_a_peer_that_dies_leaves_the_hub_and_the_rest_go_on(url: str) -> None:
    async with listening(url, 3) as (hub, _, a, b, c):
        ear = Ear(hub)
        b.socket.send(b"last words")
        await until(lambda: ear.heard == [b"last words"])
        b.socket.close()
        await until(lambda: len(hub.pipes) == 3)
        ear.say(b"x")
        a.socket.send(b"y")
        await until(lambda: a.heard == [b"last words", b"x"] and sorted(c.heard)[-2:] == [b"x", b"y"])
        assert balanced(hub.pipes)


async def test_what_a_peer_said_before_it_left_still_arrives_and_brings_no_ghost(url: str) -> None:
    async with listening(url, 2) as (hub, _, a, b):
        ear = Ear(hub)
        sent = [b"%d" % number for number in range(2000)]
        for message in sent:
            a.socket.send(message)
        await until(lambda: ear.heard)
        a.socket.close()
        await until(lambda: len(hub.pipes) == 2)
        b.socket.send(b"end")
        await until(lambda: ear.heard[-1] == b"end")
        assert ear.heard[:-1] == sent[: len(ear.heard) - 1]
        await until(lambda: b.heard == ear.heard[:-1])
        assert len(hub.pipes) == 2


async def test_closing_a_pipe_sends_that_peer_away(url: str) -> None:
    async with listening(url, 2) as (hub, _, a, b):
        first = hub.pipes[0]
        first.close()
        first.close()
        assert first not in hub.pipes
        first.send(from_payloads([b"too late"]))
        assert first.stats.dropped == {"closed": 1}
        assert first.stats.balance() == 0
        ear = Ear(hub)
        await until(lambda: not a.socket.pipes)
        ear.say(b"x")
        await until(lambda: b.heard == [b"x"])
        assert a.heard == []


async def test_dialing_before_there_is_a_listener_and_again_after_it_died() -> None:
    url, hub = f"inproc://dial{next(_numbers)}", Hub()
    link = NngLink(url, "dial", retry_min_s=0.005, retry_max_s=0.01)
    link.open(hub, asyncio.get_running_loop())
    ear = Ear(hub)
    try:
        for _ in range(3):
            peer = Peer()
            peer.socket.listen(url)
            await until(lambda peer=peer: len(hub.pipes) == 2 and peer.joined)  # type: ignore[misc]
            peer.socket.send(b"up")
            ear.say(b"down")
            await until(lambda peer=peer: ear.heard == [b"up"] and peer.heard == [b"down"])  # type: ignore[misc]
            ear.heard.clear()
            peer.socket.close()
            await until(lambda: len(hub.pipes) == 1)
    finally:
        link.close()


async def test_two_links_join_two_hubs(url: str) -> None:
    left, right = Hub(), Hub()
    loop = asyncio.get_running_loop()
    listener = NngLink(url, "listen")
    listener.open(left, loop)
    dialer = NngLink(listener.url, "dial")
    dialer.open(right, loop)
    try:
        await until(lambda: left.pipes and right.pipes)
        here, there = Ear(left), Ear(right)
        here.say(b"1", b"2")
        there.say(b"3")
        await until(lambda: there.heard == [b"1", b"2"] and here.heard == [b"3"])
        assert balanced(left.pipes + right.pipes)
    finally:
        dialer.close()
        listener.close()


async def test_a_burst_arrives_whole_and_in_order(url: str) -> None:
    async with listening(url, 1) as (hub, _, a):
        batches: list[Batch] = []
        ear = Ear(hub)
        ear.send = lambda batch: batches.append(Batch(batch.keep(), batch.count))  # type: ignore[method-assign]
        for number in range(8000):
            a.socket.send(b"%d" % number)
        await until(lambda: sum(batch.count for batch in batches) == 8000)
        assert [int(body) for batch in batches for body in payloads(batch)] == list(range(8000))


class Service(Ear):
    """A pipe that answers at once, while the hub is still sending."""

    def send(self, batch: Batch) -> None:
        super().send(batch)
        if self.heard[-1] == b"question":
            self.say(b"answer")


class Rewriter(Pipe):
    """A pipe in front of another that changes what passes."""

    inner: Pipe

    def __init__(self, inner: Pipe) -> None:
        self.inner, self.name, self.stats = inner, inner.name, Stats()

    def send(self, batch: Batch) -> None:
        self.inner.send(from_payloads(body.upper() for body in payloads(batch)))

    def close(self) -> None:
        self.inner.close()


class RewritingHub(Hub):
    """A hub that puts a `Rewriter` before every pipe of a link."""

    __slots__ = ()

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        for pipe in self.pipes:
            if pipe is not origin:
                Rewriter(pipe).send(batch)


@pytest.mark.parametrize("service_first", [True, False])
async def test_a_prompt_reply_reaches_the_one_who_asked(service_first: bool) -> None:
    hub = Hub()
    service = Service(hub) if service_first else None
    link = NngLink(f"inproc://service{next(_numbers)}")
    link.open(hub, asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        stack.callback(link.close)
        peers = [Peer() for _ in range(3)]
        for peer in peers:
            stack.callback(peer.socket.close)
            await peer.dial(link.url)
        service_pipes = 1 if service else 0
        await until(lambda: len(hub.pipes) == 3 + service_pipes)
        service = service or Service(hub)
        for asker in peers:
            asker.socket.send(b"question")
            await until(lambda: all(peer.heard.count(b"answer") == 1 for peer in peers))
            assert asker.heard == [b"answer"]
            assert all(sorted(p.heard) == [b"answer", b"question"] for p in peers if p is not asker)
            for peer in peers:
                peer.heard.clear()
        assert balanced(hub.pipes)


async def test_a_single_peer_is_answered_too(url: str) -> None:
    async with listening(url, 1) as (hub, _, a):
        Service(hub)
        a.socket.send(b"question")
        await until(lambda: a.heard == [b"answer"])
        a.socket.send(b"question")
        await until(lambda: a.heard == [b"answer", b"answer"])
        assert balanced(hub.pipes)


async def test_what_the_hub_changed_on_the_way_still_never_returns() -> None:
    hub, link = RewritingHub(), NngLink(f"inproc://rewrite{next(_numbers)}")
    link.open(hub, asyncio.get_running_loop())
    peers = [Peer() for _ in range(3)]
    try:
        for peer in peers:
            await peer.dial(link.url)
        await until(lambda: len(hub.pipes) == 3)
        for number, peer in enumerate(peers):
            peer.socket.send(b"x%d" % number)
        await until(lambda: all(len(peer.heard) == 2 for peer in peers))
        hub.publish(from_payloads([b"end"]))
        await until(lambda: all(peer.heard[-1] == b"END" for peer in peers))
        for number, peer in enumerate(peers):
            assert sorted(peer.heard) == [b"END", *sorted({b"X0", b"X1", b"X2"} - {b"X%d" % number})]
    finally:
        for peer in peers:
            peer.socket.close()
        link.close()


@pytest.mark.parametrize(
    "url", ["ws://127.0.0.1:0/x", "wss://127.0.0.1:0/x", "tls+tcp://127.0.0.1:0", "tcp://127.0.0.1:0"]
)
async def test_nng_has_no_port_of_ours(url: str) -> None:
    with pytest.raises(LinkError, match="inproc:// only"):
        NngLink(url)


async def test_a_taken_name_is_refused_with_its_address(url: str) -> None:
    loop = asyncio.get_running_loop()
    first = NngLink(url)
    first.open(Hub(), loop)
    second = NngLink(first.url)
    try:
        with pytest.raises(LinkError) as caught:
            second.open(Hub(), loop)
        assert first.url in str(caught.value)
    finally:
        first.close()
        second.close()


async def test_closing_is_idempotent_detaches_all_and_frees_the_address(url: str) -> None:
    async with listening(url, 2) as (hub, link, *_):
        kept = hub.pipes
        link.close()
        link.close()
        assert hub.pipes == ()
        kept[0].send(from_payloads([b"x"]))
        assert kept[0].stats.dropped == {"closed": 1}
        again = NngLink(link.url)
        again.open(Hub(), asyncio.get_running_loop())
        again.close()
    NngLink(url).close()


def test_an_unknown_mode_or_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="listen or dial"):
        NngLink("inproc://x", "both")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        NngLink("inproc://x", typo=1)
