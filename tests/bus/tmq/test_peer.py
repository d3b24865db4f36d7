"""Peers: a starved one takes no connection in time, and another program is no peer at all."""

import asyncio
import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from bus.ledger import Stats
from bus.serving.connection import Connection
from bus.tmq.options import Options
from bus.tmq.peer import LOCAL, Peer, PeerOwner, PeerSetup
from bus.tmq.wire import MESSAGE, Hello, pack_hello
from bus.wire.frame import pack
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.talker import send_whole
from tests.helpers.tmq import StarvedClient, processed

QUICK = Options(connect_s=0.1, doubt_s=0.2, verdict_s=0.05, retry_min_s=0.001, queue_bytes=1000)
PATIENT = replace(QUICK, connect_s=30.0)  # nothing ends because this process had no turn


class Failures(PeerOwner):
    """Keeps why a peer has failed."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def peer_failed(self, peer: Peer, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture
def starved() -> Iterator[StarvedClient]:
    with closing(StarvedClient()) as made:
        yield made


def frame(number: int) -> bytes:
    return pack(MESSAGE, (1,), b"%d" % number)


def peer(
    starved: StarvedClient, patient: bool = True, options: Options = QUICK, host: str = ""
) -> tuple[Peer, Stats, Failures]:
    stats, owner, loop = Stats(), Failures(), asyncio.get_running_loop()

    def hello(flags: int) -> Hello:
        return Hello(1, 1000, flags)

    setup = PeerSetup(loop, options, hello, stats, owner, lambda *_: None, patient)
    here, port = starved.address
    made = Peer((host or here, port), setup)
    return made, stats, owner


async def test_what_is_queued_for_a_starved_peer_arrives_when_it_reads_again(starved: StarvedClient) -> None:
    made, stats, owner = peer(starved, options=replace(QUICK, doubt_s=3.0))  # it reads again by then
    made.send(*map(frame, range(3)))
    await until(lambda: made.state == "doubted", passes=True)
    made.send(frame(3))
    made.send(bytes(1000))
    assert (made.takes(), made.gone, made.busy, made.fault) == (0, False, True, "timed out")
    assert (stats.queued, stats.dropped, stats.balance()) == (4, {"queue full": 1}, 0)
    async with asyncio.timeout(20):
        while len(starved.messages) < 4:
            await asyncio.to_thread(starved.process)
    assert starved.messages == [b"0", b"1", b"2", b"3"]
    assert (stats.sent, stats.queued, owner.reasons, made.fault) == (4, 0, [], "")
    starved.starve()
    made.send(frame(4))
    await until(lambda: made.state not in ("idle", "connecting"))
    assert (made.state, owner.reasons) == ("doubted", [])
    made.close()
    assert stats.balance() == 0


async def test_a_peer_that_does_not_answer_a_second_time_has_failed(starved: StarvedClient) -> None:
    made, stats, owner = peer(starved)
    made.send(*map(frame, range(3)))
    await until(lambda: made.state == "doubted", passes=True)
    assert owner.reasons == []
    await until(lambda: made.state == "down")
    assert owner.reasons == ["timed out"]
    assert (stats.queued, stats.dropped, stats.balance()) == (0, {"peer gone": 3}, 0)
    made.retry_now()
    made.send(frame(3))
    await until(lambda: made.state != "down", passes=True)
    await until(lambda: made.state not in ("idle", "connecting"))
    assert (made.state, owner.reasons) == ("down", ["timed out"] * 2)  # not doubted again before it answers


@pytest.mark.parametrize("code", [*sorted(LOCAL), errno.ENETUNREACH, errno.ECONNREFUSED])
async def test_what_this_machine_refuses_is_trouble_and_no_peer_that_is_gone(
    starved: StarvedClient, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    made, stats, _ = peer(starved, patient=False)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr("bus.tmq.peer.socket.socket", refuse)
        made.send(frame(0), frame(1))
        await until(lambda: made.state == "down")
    expected = "refused" if code in LOCAL else "peer gone"
    assert (stats.dropped, stats.balance()) == ({expected: 2}, 0)
    made.close()
    made.send(frame(2))
    assert stats.dropped["peer gone"] == (1 if code in LOCAL else 3)


async def test_a_refusal_counts_at_once(starved: StarvedClient) -> None:
    made, stats, owner = peer(starved)
    starved.close()
    made.send(frame(0))
    await until(lambda: made.state not in ("idle", "connecting"))
    assert (made.state, owner.reasons, stats.dropped) == ("down", ["Connection refused"], {"peer gone": 1})


async def test_a_refusal_counts_at_once_also_after_a_doubt(starved: StarvedClient) -> None:
    made, stats, owner = peer(starved)
    made.send(frame(0))
    await until(lambda: made.state == "doubted", passes=True)
    starved.close()
    await until(lambda: made.state == "down")
    assert (owner.reasons, stats.dropped) == (["Connection refused"], {"peer gone": 1})


async def test_a_peer_that_is_closed_in_doubt_is_not_dialled_again(starved: StarvedClient) -> None:
    made, stats, owner = peer(starved)
    made.send(frame(0))
    await until(lambda: made.state == "doubted", passes=True)
    made.close()
    assert (stats.dropped, stats.queued, stats.balance()) == ({"closed": 1}, 0, 0)
    await asyncio.wait([asyncio.create_task(asyncio.sleep(2 * QUICK.doubt_s))])
    assert (made.state, owner.reasons) == ("closed", [])


async def test_a_peer_that_others_can_stand_in_for_fails_at_once(starved: StarvedClient) -> None:
    made, stats, owner = peer(starved, patient=False)
    made.send(frame(0))
    await until(lambda: made.state not in ("idle", "connecting"))
    assert (made.state, owner.reasons, stats.dropped) == ("down", ["timed out"], {"peer gone": 1})


STRANGERS = {
    "a bus": (bytes.fromhex("0053500000700000"), "not a TMQ packet: 00 53 50 00 00 70 00 00"),
    "a server of ZeroMQ": (bytes.fromhex("ff00000000000000017f"), "not a TMQ packet: 01 7f"),
    "a busy serial server": (
        b"\xff\xfb\x03Port already in use\r\n",
        "not a TMQ packet: ff fb 03 50 6f 72 74 20; it said: Port already in use",
    ),
    "SSH": (b"SSH-2.0-x\r\n", "not a TMQ packet: 53 53 48 2d 32 2e 30 2d; it said: SSH-2.0-x"),
}


@pytest.mark.parametrize("is_broker", [True, False])
@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("kind", STRANGERS)
async def test_a_program_that_speaks_otherwise_has_failed(kind: str, stays: bool, is_broker: bool) -> None:
    words, fault = STRANGERS[kind]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(words)
        if stays:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", free_port()) as server:
        stats, owner = Stats(), Failures()
        setup = PeerSetup(
            asyncio.get_running_loop(),
            replace(QUICK, connect_s=2.0, verdict_s=2.0),  # by then the words have come
            lambda flags: Hello(1, 1000, flags),
            stats,
            owner,
            lambda *_: None,
            patient=not is_broker,
            answers=is_broker,
        )
        made = Peer(server.sockets[0].getsockname(), setup)
        made.send(frame(0), frame(1))
        await until(lambda: owner.reasons != [])
        assert (made.state, made.each, owner.reasons) == ("down", False, [fault])
        assert (stats.sent, stats.dropped, stats.balance()) == (1, {"peer gone": 1}, 0)
        made.close()


async def test_what_comes_for_a_peer_that_has_gone_is_for_the_one_after_it() -> None:
    heard = 0

    def count(connection: Connection, frames: list[bytes]) -> None:
        nonlocal heard
        heard += len(frames)

    def accepted() -> socket.socket:
        made = listener.accept()[0]
        made.settimeout(30)
        return made

    with socket.create_server(("127.0.0.1", 0)) as listener:
        stats = Stats()
        setup = PeerSetup(
            asyncio.get_running_loop(), QUICK, lambda flags: Hello(1, 1000, flags), stats, PeerOwner(), count
        )
        made = Peer(listener.getsockname()[:2], setup._replace(options=replace(QUICK, verdict_s=20.0)))
        made.send(frame(0))
        with await asyncio.to_thread(accepted) as first:
            first.sendall(pack_hello(Hello(2, 60_000, 0)))
            await until(lambda: made.state == "streaming")
            send_whole(first, frame(1) * 4000)
        while made.pass_on([frame(2)]):
            assert stats.offered < 1000
        assert (made.takes(), made.pass_on([frame(2)]), heard) == (0, False, 0)
        made.send(frame(3))
        with await asyncio.to_thread(accepted) as second:
            assert await asyncio.to_thread(second.recv, 100) == frame(3)
        made.close()
    assert (heard, stats.balance()) == (4000, 0)


def name_two(patch: pytest.MonkeyPatch, *places: tuple[str, int]) -> None:
    """Give `peer.example` several places, of which the next is tried only after the one before."""

    async def look_up(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]

    patch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look_up)
    patch.setattr("bus.transports.sockets._NEXT_S", 30.0)


async def test_an_address_of_a_name_that_refuses_is_no_failure_where_another_takes_the_packet(
    starved: StarvedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_two(monkeypatch, ("127.0.0.2", starved.address[1]), starved.address)
    await asyncio.to_thread(starved.process)
    made, _, owner = peer(starved, patient=False, options=PATIENT, host="peer.example")
    made.send(frame(0))
    await processed(lambda: starved.messages, starved)
    assert (starved.messages, owner.reasons) == ([b"0"], [])
    made.close()


async def test_after_a_failure_another_address_of_the_name_is_tried(
    starved: StarvedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(starved.process)
    made, _, owner = peer(starved, patient=False, options=PATIENT, host="peer.example")
    with socket.create_server(("127.0.0.1", 0)) as server:
        name_two(monkeypatch, server.getsockname(), starved.address)
        made.send(frame(0))
        one, _ = await asyncio.to_thread(server.accept)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it resets
        one.close()
        await until(lambda: bool(owner.reasons))
        made.retry_now()
        made.send(frame(1))
        await processed(lambda: starved.messages, starved)
    assert (starved.messages, len(owner.reasons)) == ([b"1"], 1)
    made.close()
