"""The transports of NNG, as links of a hub, against plain pynng peers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pynng
import pytest
import trustme

from bus.errors import LinkError
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.transports.nng import NngLink
from bus.transports.options import Tls
from bus.wire.batch import Batch, from_payloads, payloads
from tests.helpers.peers import Ear, until

TRANSPORTS = ("ws", "wss", "tls+tcp", "inproc", "tcp", "ipc")
_numbers = count()


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """Return one configuration for listeners and dialers."""
    folder: Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    return Tls(str(folder / "ca.pem"), str(folder / "own.pem"))


@pytest.fixture(params=TRANSPORTS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    scheme: str = request.param
    return _url(scheme, tmp_path)


def _url(scheme: str, folder: Path) -> str:
    local = {"inproc": f"inproc://link{next(_numbers)}", "ipc": f"ipc://{folder}/s"}
    path = "/bus" if scheme.startswith("ws") else ""
    return local.get(scheme, f"{scheme}://127.0.0.1:0{path}")


class Peer:
    """A plain pynng socket that dials or listens; `heard` holds the received messages."""

    def __init__(self, tls: Tls, buffer: int = 8192, **options: Any) -> None:
        config = pynng.TLSConfig(pynng.TLSConfig.MODE_CLIENT, server_name="127.0.0.1", ca_files=[tls.ca_file])
        self.socket = pynng.Bus0(
            recv_buffer_size=buffer, send_buffer_size=buffer, tls_config=config, **options
        )
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
async def listening(url: str, tls: Tls, peers: int, **limits: Any) -> AsyncIterator[tuple[Any, ...]]:
    """Open a hub with a listening link and `peers` dialed peers; yield when all are attached."""
    hub = Hub()
    link = NngLink(url, "listen", tls=tls, **limits)
    link.open(hub, asyncio.get_running_loop())
    others = [Peer(tls, reconnect_time_min=5000) for _ in range(peers)]
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


async def test_what_one_peer_says_reaches_all_others_once_and_never_itself(url: str, tls: Tls) -> None:
    async with listening(url, tls, 3) as (hub, _, a, b, c):
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


async def test_what_the_hub_says_reaches_every_peer_once(url: str, tls: Tls) -> None:
    async with listening(url, tls, 3) as (hub, _, *peers):
        ear = Ear(hub)
        ear.say(b"one", b"", b"two")
        ear.say(b"three")
        await until(lambda: all(len(peer.heard) == 4 for peer in peers))
        assert all(peer.heard == [b"one", b"", b"two", b"three"] for peer in peers)
        assert all(pipe.stats.sent == 4 for pipe in hub.pipes if pipe is not ear)
        assert balanced(hub.pipes)


async def test_empty_messages_and_the_longest_pass_and_a_longer_one_costs_the_connection(
    url: str, tls: Tls
) -> None:
    async with listening(url, tls, 2, message_bytes=70_000) as (hub, link, a, b):
        ear = Ear(hub)
        for message in (b"", bytes(70_000), b"end"):
            a.socket.send(message)
        await until(lambda: len(ear.heard) == 3 and len(b.heard) == 3)
        assert ear.heard == b.heard == [b"", bytes(70_000), b"end"]
        if link.url.startswith("inproc"):
            return  # inproc passes a pointer, and NNG does not check its size
        a.socket.send(bytes(70_001))
        await until(lambda: len(hub.pipes) == 2)
        b.socket.send(b"unmoved")
        await until(lambda: ear.heard[-1] == b"unmoved")
        assert len(ear.heard) == 4


async def test_a_peer_that_dies_leaves_the_hub_and_the_rest_go_on(url: str, tls: Tls) -> None:
    async with listening(url, tls, 3) as (hub, _, a, b, c):
        ear = Ear(hub)
        b.socket.send(b"last words")
        await until(lambda: ear.heard == [b"last words"])
        b.socket.close()
        await until(lambda: len(hub.pipes) == 3)
        ear.say(b"x")
        a.socket.send(b"y")
        await until(lambda: a.heard == [b"last words", b"x"] and sorted(c.heard)[-2:] == [b"x", b"y"])
        assert balanced(hub.pipes)


@pytest.mark.parametrize("scheme", ["tcp", "ipc", "tls+tcp", "inproc"])
async def test_what_a_peer_said_before_it_left_still_arrives_and_brings_no_ghost(
    scheme: str, tls: Tls, tmp_path: Path
) -> None:
    """Not over WebSocket: a plain pynng peer that closes while it sends may abort this process."""
    async with listening(_url(scheme, tmp_path), tls, 2) as (hub, _, a, b):
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


async def test_no_end_of_a_tls_connection_goes_unnoticed(tls: Tls, tmp_path: Path) -> None:
    """NNG alone misses about every third of these."""
    async with listening(_url("tls+tcp", tmp_path), tls, 0) as (hub, link):
        for _ in range(20):
            peer = Peer(tls)
            await peer.dial(link.url)
            for number in range(2000):
                peer.socket.send(b"%d" % number)
            peer.socket.close()
        await until(lambda: not hub.pipes)


async def test_closing_a_pipe_sends_that_peer_away(tls: Tls, tmp_path: Path) -> None:
    async with listening(_url("ws", tmp_path), tls, 2) as (hub, _, a, b):
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


async def test_dialing_before_there_is_a_listener_and_again_after_it_died(tls: Tls) -> None:
    url, hub = f"inproc://dial{next(_numbers)}", Hub()
    link = NngLink(url, "dial", retry_min_s=0.005, retry_max_s=0.01)
    link.open(hub, asyncio.get_running_loop())
    ear = Ear(hub)
    try:
        for _ in range(3):
            peer = Peer(tls)
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


async def test_two_links_join_two_hubs_on_each_transport(url: str, tls: Tls) -> None:
    left, right = Hub(), Hub()
    loop = asyncio.get_running_loop()
    listener = NngLink(url, "listen", tls=tls)
    listener.open(left, loop)
    dialer = NngLink(listener.url, "dial", tls=tls)
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


async def test_a_burst_arrives_whole_and_in_order(tls: Tls, tmp_path: Path) -> None:
    async with listening(_url("tls+tcp", tmp_path), tls, 1) as (hub, _, a):
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
async def test_a_prompt_reply_reaches_the_one_who_asked(tls: Tls, service_first: bool) -> None:
    hub = Hub()
    service = Service(hub) if service_first else None
    link = NngLink(f"inproc://service{next(_numbers)}")
    link.open(hub, asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        stack.callback(link.close)
        peers = [Peer(tls) for _ in range(3)]
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


async def test_a_single_peer_is_answered_too(tls: Tls, tmp_path: Path) -> None:
    async with listening(_url("ws", tmp_path), tls, 1) as (hub, _, a):
        Service(hub)
        a.socket.send(b"question")
        await until(lambda: a.heard == [b"answer"])
        a.socket.send(b"question")
        await until(lambda: a.heard == [b"answer", b"answer"])
        assert balanced(hub.pipes)


async def test_what_the_hub_changed_on_the_way_still_never_returns(tls: Tls) -> None:
    hub, link = RewritingHub(), NngLink(f"inproc://rewrite{next(_numbers)}")
    link.open(hub, asyncio.get_running_loop())
    peers = [Peer(tls) for _ in range(3)]
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


@pytest.mark.parametrize("url", ["ws://127.0.0.1:99999/x", "ws://", "bogus://x", "wss://127.0.0.1:0/x"])
async def test_what_cannot_work_is_refused_with_its_address(url: str) -> None:
    link = NngLink(url)
    with pytest.raises(LinkError) as caught:
        link.open(Hub(), asyncio.get_running_loop())
    assert url in str(caught.value)
    link.close()


async def test_a_taken_port_is_refused_with_its_address(url: str, tls: Tls) -> None:
    loop = asyncio.get_running_loop()
    first = NngLink(url, tls=tls)
    first.open(Hub(), loop)
    second = NngLink(first.url, tls=tls)
    try:
        with pytest.raises(LinkError) as caught:
            second.open(Hub(), loop)
        assert first.url in str(caught.value)
    finally:
        first.close()
        second.close()


async def test_closing_is_idempotent_detaches_all_and_frees_the_address(url: str, tls: Tls) -> None:
    async with listening(url, tls, 2) as (hub, link, *_):
        kept = hub.pipes
        link.close()
        link.close()
        assert hub.pipes == ()
        kept[0].send(from_payloads([b"x"]))
        assert kept[0].stats.dropped == {"closed": 1}
        again = NngLink(link.url, tls=tls)
        again.open(Hub(), asyncio.get_running_loop())
        again.close()
    NngLink(url).close()


def test_an_unknown_mode_or_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="listen or dial"):
        NngLink("ws://127.0.0.1:0/x", "both")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        NngLink("ws://127.0.0.1:0/x", typo=1)
