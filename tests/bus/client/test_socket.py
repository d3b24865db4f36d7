"""The application's socket against itself and against plain pynng."""

from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pynng
import pytest
import trustme

from bus.client.socket import Bus, RawBus, Tls
from bus.errors import TokenError
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import CACHE, PUB, Frame, pack, unpack
from bus.wire.pattern import token
from tests.bus.client.sockets import LOOPBACK, TEMP, WAIT_S, connected
from tests.helpers.peers import wait
from tests.helpers.ports import free_port


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
        while a.rejected < 100:  # a stall of the machine may end one receive before all have come
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


def test_an_oversize_message_costs_its_sender_the_connection_and_nobody_else() -> None:
    with (
        Bus(listen=LOOPBACK, message_bytes=1000) as bus,
        Bus(dial=bus.urls) as good,
        Bus(dial=bus.urls, retry_min_s=5, retry_max_s=5) as bad,
    ):
        connected((bus, 2), (good, 1), (bad, 1))
        bad.send_bytes(bytes(1001))
        wait(lambda: len(bus.peers) < 2, WAIT_S)
        good.send_bytes(bytes(1000))
        assert len(bus.recv_bytes(WAIT_S)) == 1000
        with pytest.raises(TimeoutError):
            bus.recv_bytes(0)


def test_dialing_goes_on_until_there_is_a_listener_and_after_it_died() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"  # nobody else gets it meanwhile
    with Bus(listen=url):
        caller = Bus(dial=url, retry_min_s=0.01, retry_max_s=0.02)
        connected((caller, 1))
    with caller:
        wait(lambda: not caller.peers, WAIT_S)
        with Bus(listen=url) as second:
            connected((caller, 1), (second, 1))
            caller.send(TEMP, b"again")
            assert second.recv(WAIT_S).data == b"again"


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
        wait(lambda: peer not in hub.peers, WAIT_S)
        hub.send(b"after", exclude=peer)
        assert stays.recv_bytes(WAIT_S) == b"after"


@pytest.mark.parametrize("first", [(1,), (1, 0), ("a", 1)])
def test_what_only_equals_a_token_is_none_also_after_that_token(first: tuple[int | str, ...]) -> None:
    """In Python, True and 1.0 equal 1."""
    with Bus(listen=LOOPBACK) as bus:
        bus.send(first)
        for other in (bool, float):
            names: list[Any] = [name if isinstance(name, str) else other(name) for name in first]
            with pytest.raises(TokenError):
                bus.send(names)
        bus.send(first)


class Full(Bus):
    """A bus at which messages wait."""

    waiting: Iterator[bytes] = iter(())

    def _receive(self, deadline: float | None) -> tuple[bytes, int]:
        message = next(self.waiting, None)
        return super()._receive(deadline) if message is None else (message, 0)

    async def _areceive(self) -> tuple[bytes, int]:
        message = next(self.waiting, None)
        return await super()._areceive() if message is None else (message, 0)


@pytest.mark.parametrize("limit_s", [0, -1.0, WAIT_S])
async def test_a_receive_gets_the_frame_that_waits_behind_messages_that_are_none(limit_s: float) -> None:
    with Full(listen=LOOPBACK) as bus:
        for count in (1, 63, 64, 65, 200):
            bus.waiting = iter([*[b"junk"] * count, pack(PUB, TEMP, b"1")] * 2)
            assert bus.recv(limit_s).data == b"1"
            assert (await bus.arecv(limit_s)).data == b"1"
        with pytest.raises(TimeoutError):
            bus.recv(0)
        with pytest.raises(TimeoutError):
            await bus.arecv(0)


async def test_messages_that_are_no_frames_and_never_end_keep_no_receive_for_ever() -> None:
    with Full(listen=LOOPBACK, queue_messages=64) as bus:
        bus.waiting = islice(repeat(b"junk"), 100_000)
        with pytest.raises(TimeoutError):
            bus.recv(0)
        with pytest.raises(TimeoutError):
            await bus.arecv(0)
        assert 64 < bus.rejected < 1000
