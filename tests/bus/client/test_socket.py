"""The application's socket against itself and against plain pynng."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pynng
import pytest
import trustme

from bus.client.socket import Bus, ClosedError, RawBus, Tls
from bus.errors import FrameError, LinkError, TokenError
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import CACHE, PUB, Frame, pack, unpack
from bus.wire.pattern import Pattern, token

WAIT_S = 10.0
LOOPBACK = "tcp://127.0.0.1:0"
TEMP = Pattern("fridge", "temp")


def eventually(condition: Callable[[], bool]) -> None:
    """Poll for at most `WAIT_S`, because NNG's threads work asynchronously."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


def connected(*sockets: tuple[Bus | RawBus, int]) -> None:
    for socket, peers in sockets:
        assert socket.wait_peers(peers, WAIT_S)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tls, Tls]:
    """Return the configurations of listener and dialer, from one authority."""
    folder: Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        str(folder / "own.pem")
    )
    return Tls(cert_file=str(folder / "own.pem")), Tls(ca_file=str(folder / "ca.pem"))


def test_a_frame_goes_to_the_other_side_and_not_back() -> None:
    with Bus(listen=LOOPBACK) as a, Bus(dial=a.urls[0]) as b:
        connected((a, 1), (b, 1))
        b.send(("fridge", "temp"), b"21.5")
        a.send(["fridge", 7], b"on", type=CACHE)
        assert a.recv(WAIT_S) == Frame(PUB, TEMP, b"21.5")
        assert b.recv(WAIT_S) == Frame(CACHE, (token("fridge"), 7), b"on")
        with pytest.raises(TimeoutError):
            b.recv(timeout=0)
        with pytest.raises(TimeoutError):
            a.recv(timeout=0)


def test_plain_pynng_reads_and_writes_the_same_bytes() -> None:
    with Bus(listen=LOOPBACK) as bus, pynng.Bus0(recv_timeout=10_000) as plain:
        plain.dial(bus.urls[0], block=True)
        connected((bus, 1))
        bus.send(TEMP, b"x")
        assert plain.recv() == pack(PUB, TEMP, b"x")
        plain.send(pack(PUB, (1, 2), b"y"))
        assert bus.recv(WAIT_S) == Frame(PUB, (1, 2), b"y")


def test_what_is_no_frame_is_counted_and_skipped_and_an_envelope_is_taken_off() -> None:
    with Bus(listen=LOOPBACK) as a, Bus(dial=a.urls[0]) as b:
        connected((a, 1), (b, 1))
        for junk in (b"", b"abc", b"\xff" * 100, pack(PUB, TEMP, b"1") + b"trailer"):
            b.send_bytes(junk)
        b.send_bytes(wrap(pack(PUB, TEMP, b"2"), Envelope(9, 1)))
        b.send(TEMP, b"3")
        assert [a.recv(WAIT_S).data, a.recv(WAIT_S).data] == [b"2", b"3"]
        assert a.rejected == 4


def test_a_stream_of_junk_does_not_extend_the_time_limit() -> None:
    with Bus(listen="inproc://junk") as a, Bus(dial="inproc://junk") as b:
        connected((a, 1), (b, 1))
        for _ in range(100):
            b.send_bytes(b"junk")
        with pytest.raises(TimeoutError):
            a.recv(timeout=0.2)
        assert a.rejected == 100


def test_raw_bytes_pass_unchanged_empty_ones_too() -> None:
    with Bus(listen=LOOPBACK) as a, Bus(dial=a.urls[0]) as b:
        connected((a, 1), (b, 1))
        for message in (b"", b"not a frame", bytearray(b"array"), memoryview(b"view")[1:]):
            b.send_bytes(message)
            assert a.recv_bytes(WAIT_S) == bytes(message)


def test_a_burst_is_neither_lost_on_the_way_nor_by_closing_at_once() -> None:
    with Bus(listen=LOOPBACK) as a:
        with Bus(dial=a.urls[0]) as b:
            connected((a, 1), (b, 1))
            for number in range(4000):
                b.send((number,))
        assert [a.recv(WAIT_S).tokens for _ in range(4000)] == [(n,) for n in range(4000)]


@pytest.mark.websocket
def test_leaving_at_once_over_websocket_loses_nothing() -> None:
    with Bus(listen="ws://127.0.0.1:0/bus") as a:
        with Bus(dial=a.urls[0]) as b:
            connected((a, 1), (b, 1))
            for number in range(200):
                b.send((number,))
        assert [a.recv(WAIT_S).tokens for _ in range(200)] == [(n,) for n in range(200)]


def test_three_make_a_full_mesh_without_a_device() -> None:
    with (
        Bus(listen=LOOPBACK) as a,
        Bus(listen=LOOPBACK, dial=a.urls[0]) as b,
        Bus(dial=[a.urls[0], b.urls[0]]) as c,
    ):
        connected((a, 2), (b, 2), (c, 2))
        for name, sender in (("a", a), ("b", b), ("c", c)):
            sender.send((name,))
        for name, receiver in (("a", a), ("b", b), ("c", c)):
            heard = {receiver.recv(WAIT_S).tokens for _ in range(2)}
            assert heard == {(token(other),) for other in "abc" if other != name}
            with pytest.raises(TimeoutError):
                receiver.recv(0)


@pytest.mark.websocket
def test_one_socket_on_many_transports(tmp_path: Path, tls: tuple[Tls, Tls]) -> None:
    server, client = tls
    urls = [LOOPBACK, f"ipc://{tmp_path}/s", "ws://127.0.0.1:0/b", "inproc://many"]
    urls += ["tls+tcp://127.0.0.1:0", "wss://127.0.0.1:0/b"]
    with Bus(listen=urls, tls=server) as hub, Bus(dial=hub.urls, tls=client) as peer:
        connected((hub, 6), (peer, 6))
        peer.send(TEMP, b"six times")
        assert [hub.recv(WAIT_S).data for _ in urls] == [b"six times"] * 6


def test_a_listener_can_ask_for_its_peers_certificates(tmp_path: Path) -> None:
    authority, own = trustme.CA(), str(tmp_path / "own.pem")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(own)
    both = Tls(str(tmp_path / "ca.pem"), own, server_name="localhost", require_peer_cert=True)
    stranger = Tls(str(tmp_path / "ca.pem"), server_name="localhost")
    with Bus(listen="tls+tcp://127.0.0.1:0", tls=both) as bus:
        with Bus(dial=bus.urls, tls=stranger, connect_s=0.3) as outside:
            assert not bus.peers
            assert not outside.wait_peers(1, 0) or not bus.peers
        with Bus(dial=bus.urls, tls=both) as inside:
            connected((bus, 1), (inside, 1))


def test_a_wrong_authority_is_not_trusted(tmp_path: Path, tls: tuple[Tls, Tls]) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    other = Tls(ca_file=str(tmp_path / "other.pem"))
    with (
        Bus(listen="tls+tcp://127.0.0.1:0", tls=tls[0]) as bus,
        Bus(dial=bus.urls, tls=other, connect_s=0.3) as fooled,
    ):
        assert not fooled.peers


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "bogus://127.0.0.1:1",
        "tcp://",
        "tcp://127.0.0.1:99999",
        "tls+tcp://127.0.0.1:0",
        "ipc:///no/such/folder/socket",
    ],
)
def test_an_address_that_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(LinkError) as caught:
        Bus(listen=url)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    "url", ["nonsense", "bogus://127.0.0.1:1", "tcp://127.0.0.1:99999", "tcp://", "tcp://a..b:5"]
)
def test_dialing_what_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(LinkError) as caught:
        Bus(dial=url)
    assert url in str(caught.value)


def test_a_medium_is_refused_with_advice() -> None:
    with pytest.raises(LinkError, match="joined by a bridge: dial the bus"):
        Bus(dial="multicast:239.255.42.1:9943?interface=lo")


def test_a_missing_tls_file_and_a_broken_one_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.pem").write_text("not a certificate")
    for name in ("missing.pem", "broken.pem"):
        with pytest.raises(LinkError) as caught:
            Bus(listen="wss://127.0.0.1:0/x", tls=Tls(cert_file=str(tmp_path / name)))
        assert name in str(caught.value)
        assert "wss://" in str(caught.value)


def test_a_taken_port_and_a_socket_that_would_hear_itself() -> None:
    with Bus(listen=LOOPBACK) as bus:
        with pytest.raises(LinkError) as caught:
            Bus(listen=bus.urls)
        assert bus.urls[0] in str(caught.value)
    with pytest.raises(LinkError, match="hear itself"):
        Bus(listen="inproc://self", dial="inproc://self")
    for kind in (Bus, RawBus):
        with pytest.raises(LinkError, match=r"tcp://127\.0\.0\.1:9: dialled twice"):
            kind(dial=["tcp://127.0.0.1:9"] * 2)


def test_unfit_limits_are_refused() -> None:
    for limits in ({"queue_messages": 9000}, {"message_bytes": 0}, {"retry_min_s": 2.0, "retry_max_s": 1.0}):
        with pytest.raises(ValueError, match=r"must be|at least"):
            Bus(**limits)
    with pytest.raises(TypeError):
        Bus(typo=1)


def test_what_fits_no_frame_is_refused_before_sending() -> None:
    with Bus(listen="inproc://unfit") as bus:
        with pytest.raises(FrameError):
            bus.send(TEMP, bytes(2049))
        with pytest.raises(TokenError, match=r"\('fridge',\)"):
            bus.send("fridge", b"")
        with pytest.raises(TokenError):
            bus.send((-1,), b"")


def test_an_oversize_message_costs_its_sender_the_connection_and_nobody_else() -> None:
    with (
        Bus(listen=LOOPBACK, message_bytes=1000) as bus,
        Bus(dial=bus.urls) as good,
        Bus(dial=bus.urls, retry_min_s=5, retry_max_s=5) as bad,
    ):
        connected((bus, 2), (good, 1), (bad, 1))
        bad.send_bytes(bytes(1001))
        eventually(lambda: len(bus.peers) < 2)
        good.send_bytes(bytes(1000))
        assert len(bus.recv_bytes(WAIT_S)) == 1000
        with pytest.raises(TimeoutError):
            bus.recv_bytes(0)


def test_dialing_goes_on_until_there_is_a_listener_and_after_it_died() -> None:
    with Bus(listen=LOOPBACK) as first:
        url = first.urls[0]
        caller = Bus(dial=url, retry_min_s=0.01, retry_max_s=0.02)
        connected((caller, 1))
    with caller:
        eventually(lambda: not caller.peers)
        with Bus(listen=url) as second:
            connected((caller, 1), (second, 1))
            caller.send(TEMP, b"again")
            assert second.recv(WAIT_S).data == b"again"


def test_closing_ends_iteration_and_a_receiver_in_another_thread() -> None:
    bus, ended = Bus(listen="inproc://ending"), threading.Event()

    def listen() -> None:
        for _ in bus:
            pass
        ended.set()

    thread = threading.Thread(target=listen)
    thread.start()
    with Bus(dial="inproc://ending") as peer:
        peer.send(TEMP)
    bus.close()
    bus.close()
    assert ended.wait(WAIT_S)
    thread.join()
    with pytest.raises(ClosedError):
        bus.recv(0)
    with pytest.raises(ClosedError):
        bus.send(TEMP)


def _waits_in_a_thread(bus: Bus) -> None:
    with pytest.raises(ClosedError):
        bus.wait_peers(1)


async def _waits_in_a_task(bus: Bus) -> None:
    waiting = asyncio.ensure_future(bus.await_peers(1))
    await asyncio.sleep(0)
    await bus.aclose()
    with pytest.raises(ClosedError):
        await waiting


async def _is_cancelled(bus: Bus) -> None:
    waiting = asyncio.ensure_future(bus.await_peers(1))
    await asyncio.sleep(0)
    waiting.cancel()


async def _is_cancelled_at_its_entrance(bus: Bus) -> None:
    entrance = asyncio.ensure_future(bus.__aenter__())
    await asyncio.sleep(0)
    entrance.cancel()
    await bus.aclose()


@pytest.mark.parametrize(
    "way",
    [
        _waits_in_a_thread,
        lambda bus: asyncio.run(_waits_in_a_task(bus)),
        lambda bus: asyncio.run(_is_cancelled(bus)),
        lambda bus: asyncio.run(_is_cancelled_at_its_entrance(bus)),
    ],
)
def test_a_wait_for_peers_ends_with_its_socket_and_with_its_task(way: Callable[[Bus], None]) -> None:
    """Neither a closed socket nor Ctrl-C leaves a thread that waits for ever: the program could not end."""
    bus = Bus(dial="inproc://nobody", connect_s=10 * WAIT_S, linger_s=0)
    thread = threading.Thread(target=way, args=(bus,), daemon=True)
    thread.start()
    if way is _waits_in_a_thread:
        bus.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    bus.close()


def test_forgetting_to_close_is_a_warning() -> None:
    bus = Bus(listen="inproc://forgotten")
    with pytest.warns(ResourceWarning, match="unclosed"):
        bus.__del__()


async def test_async_twins() -> None:
    async with Bus(listen=LOOPBACK) as a, Bus(dial=a.urls[0]) as b:
        assert await a.await_peers(1, WAIT_S)
        await b.asend(("x",), b"1")
        assert await a.arecv(WAIT_S) == Frame(PUB, (token("x"),), b"1")
        await b.asend_bytes(b"raw")
        assert await a.arecv_bytes(WAIT_S) == b"raw"
        await b.asend_bytes(b"junk")
        with pytest.raises(TimeoutError):
            await a.arecv(0.1)
        assert a.rejected == 1


async def test_async_iteration_ends_when_the_socket_closes() -> None:
    async with Bus(listen="inproc://iteration") as a, Bus(dial="inproc://iteration") as b:
        assert await a.await_peers(1, WAIT_S)

        heard: list[bytes] = []
        complete = asyncio.Event()

        async def collect() -> None:
            async for frame in a:
                heard.append(frame.data)
                if len(heard) == 200:
                    complete.set()

        task = asyncio.create_task(collect())
        for number in range(200):
            await b.asend(TEMP, b"%d" % number)
        await asyncio.wait_for(complete.wait(), WAIT_S)
        await a.aclose()
        await asyncio.wait_for(task, WAIT_S)
        assert heard == [b"%d" % number for number in range(200)]


async def test_a_cancelled_receive_loses_no_message_and_two_may_wait() -> None:
    async with Bus(listen="inproc://cancel") as a, Bus(dial="inproc://cancel") as b:
        assert await a.await_peers(1, WAIT_S)
        waiting = [asyncio.create_task(a.arecv()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        for number in range(3):
            b.send((number,))
        heard = {(await asyncio.wait_for(task, WAIT_S)).tokens for task in waiting[1:]}
        heard.add((await a.arecv(WAIT_S)).tokens)
        assert heard == {(0,), (1,), (2,)}


async def test_a_busy_receiver_lets_other_tasks_run() -> None:
    async with Bus(listen="inproc://busy") as a, Bus(dial="inproc://busy") as b:
        assert await a.await_peers(1, WAIT_S)
        for number in range(1000):
            b.send((number,))
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(1000):
            await a.arecv(WAIT_S)
        task.cancel()
        assert turns >= 10


def test_a_raw_socket_leaves_out_exactly_the_peer_it_is_told() -> None:
    with (
        RawBus(listen=LOOPBACK) as hub,
        Bus(dial=hub.urls) as a,
        Bus(dial=hub.urls) as b,
        Bus(dial=hub.urls) as c,
    ):
        connected((hub, 3), (a, 1), (b, 1), (c, 1))
        a.send(TEMP, b"from a")
        message, peer = hub.recv(WAIT_S)
        assert unpack(message).data == b"from a"
        assert peer in hub.peers
        hub.send(message, exclude=peer)
        hub.send(b"to all")
        hub.send(b"", exclude=peer)
        assert [b.recv_bytes(WAIT_S), b.recv_bytes(WAIT_S), b.recv_bytes(WAIT_S)] == [message, b"to all", b""]
        assert [c.recv_bytes(WAIT_S), c.recv_bytes(WAIT_S), c.recv_bytes(WAIT_S)] == [message, b"to all", b""]
        assert a.recv_bytes(WAIT_S) == b"to all"
        with pytest.raises(TimeoutError):
            a.recv_bytes(0)


def test_a_departed_peer_excludes_nobody() -> None:
    with RawBus(listen=LOOPBACK) as hub, Bus(dial=hub.urls) as stays:
        with Bus(dial=hub.urls) as leaves:
            connected((hub, 2), (leaves, 1))
            leaves.send(TEMP)
            _, peer = hub.recv(WAIT_S)
        eventually(lambda: peer not in hub.peers)
        hub.send(b"after", exclude=peer)
        assert stays.recv_bytes(WAIT_S) == b"after"


async def test_raw_async_twins() -> None:
    async with (
        RawBus(listen="inproc://raw") as hub,
        Bus(dial="inproc://raw") as a,
        Bus(dial=["inproc://raw"]) as b,
    ):
        assert await hub.await_peers(2, WAIT_S)
        await a.asend_bytes(b"1")
        async for message, peer in hub:
            await hub.asend(message + b"!", exclude=peer)
            break
        assert await b.arecv_bytes(WAIT_S) == b"1!"
        await b.asend_bytes(b"2")
        message, peer = await hub.arecv(WAIT_S)
        assert message == b"2"
        assert peer in hub.peers
