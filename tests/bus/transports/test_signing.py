"""Trunks with keys on real sockets: who has none, or others, gets nowhere; the ledger holds; keys rotate."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bus.hub import Hub
from bus.keys import Keyring
from bus.transports.dialling import DialLink
from bus.transports.listening import ListenLink
from bus.transports.options import Tls
from bus.transports.stream import StreamPipe
from bus.wire.batch import from_payloads
from bus.wire.signed import HELLO_BYTES, Session
from tests.helpers.certificates import own_tls
from tests.helpers.peers import Ear, SpPeer, until

to_thread = asyncio.to_thread
OLD, NEW = b"o" * 32, b"n" * 32
TCP = "tcp://127.0.0.1:0"
MESSAGES = [b"", b"x", bytes(70_000), bytes(1 << 20), *[b"%d" % number for number in range(3000)]]


def ring(*secrets: bytes) -> Keyring:
    return Keyring(secrets)


@asynccontextmanager
async def linked(
    near: Keyring | None, far: Keyring | None, url: str = TCP, **options: Any
) -> AsyncIterator[tuple[Ear, ListenLink, Ear, DialLink]]:
    """Open a listener and one that dials it, each on a hub with an ear; `near` are the listener's keys."""
    loop, tls = asyncio.get_running_loop(), options.pop("tls", None)
    listening = ListenLink(url, keys=near, wary=True, tls=tls, **options)
    here, there = Hub(), Hub()
    listening.open(here, loop)
    trust = None if tls is None else Tls(ca_file=tls.ca_file)
    dialling = DialLink(
        listening.url, keys=far, wary=True, tls=trust, retry_min_s=0.01, retry_max_s=0.02, **options
    )
    dialling.open(there, loop)
    try:
        yield Ear(here), listening, Ear(there), dialling
    finally:
        dialling.close()
        listening.close()


def ready(link: ListenLink | DialLink) -> StreamPipe:
    return next(pipe for pipe in link.pipes if pipe.ready)


def all_heard(ear: Ear, count: int) -> bool:
    return len(ear.heard) == count


async def up(*links: ListenLink | DialLink) -> None:
    await until(lambda: all(any(pipe.ready for pipe in link.pipes) for link in links))


@pytest.fixture(params=["tcp", "ipc", "ws", "wss", "tls+tcp"])
def place(request: pytest.FixtureRequest, socket_path: Path, tmp_path: Path) -> tuple[str, Tls | None]:
    url = f"ipc://{socket_path}" if request.param == "ipc" else f"{request.param}://127.0.0.1:0"
    secure = request.param in ("wss", "tls+tcp")
    return (f"{url}/bus" if "ws" in request.param else url), own_tls(tmp_path) if secure else None


async def test_messages_cross_in_both_directions_on_every_scheme(place: tuple[str, Tls | None]) -> None:
    url, tls = place
    async with linked(ring(OLD), ring(OLD), url, tls=tls) as (here, near, there, far):
        await up(near, far)
        here.say(*MESSAGES)
        there.say(*MESSAGES[::-1])
        await until(lambda: len(there.heard) == len(here.heard) == len(MESSAGES))
        assert there.heard == MESSAGES
        assert here.heard == MESSAGES[::-1]
        for link, ear in ((near, there), (far, here)):
            stats = ready(link).stats
            assert (stats.balance(), stats.sent, stats.received) == (0, len(ear.heard), len(MESSAGES))


@pytest.mark.parametrize(
    ("near", "far", "here", "there"),
    [
        (ring(OLD), ring(NEW), {"forged"}, {"forged"}),
        (ring(OLD), None, set[str](), {"signed"}),
        (None, ring(OLD), {"signed"}, set[str]()),
    ],
)
async def test_ends_that_do_not_agree_say_so_on_both_sides_and_exchange_nothing(
    near: Keyring | None,
    far: Keyring | None,
    here: set[str],
    there: set[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with linked(near, far) as (ear, listening, other, dialling):
        await until(lambda: listening.fault or listening.losses)
        await until(lambda: len([r for r in caplog.records if r.levelno == logging.WARNING]) >= 4)
        ear.say(b"secret")
        other.say(b"secret")
        assert ear.heard == other.heard == []
        for hub, link, reasons in ((ear.hub, listening, here), (other.hub, dialling, there)):
            accounts = hub.accounts()
            assert set(accounts[link.name].stats.rejected if link.name in accounts else ()) == reasons
            assert link.fault
        words = caplog.text
        assert "give both ends the same keys" in words
    warned = {record.name for record in caplog.records if record.levelno == logging.WARNING}
    assert warned == {"buscoupler.bus"}


async def test_a_stranger_hears_nothing_and_is_not_heard() -> None:
    listening, hub = ListenLink(TCP, keys=ring(OLD)), Hub()
    listening.open(hub, asyncio.get_running_loop())
    ear = Ear(hub)
    try:
        for words in ([b"\x01\x00\x00\x00"], [bytes(HELLO_BYTES)], [b"", b"x"], [bytes(600)]):
            peer = SpPeer(listening.url)
            await to_thread(peer.greeting)
            assert len(await to_thread(peer.receive)) == HELLO_BYTES
            ear.say(b"not for strangers")
            await to_thread(peer.send, *words)
            assert await to_thread(peer.rest) == b""
            peer.close()
        assert ear.heard == []
        peer = SpPeer(listening.url)  # announces a long message, and says more than a handshake takes
        await to_thread(peer.socket.sendall, (100_000).to_bytes(8, "big") + bytes(600))
        assert await to_thread(peer.at_end)
        peer.close()
        assert hub.accounts()[TCP].stats.rejected == {"unsigned": 5}
        assert hub.pipes == (ear,)
    finally:
        listening.close()


async def test_a_hello_without_a_proof_is_closed_in_time_and_never_let_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listening, hub = ListenLink(TCP, keys=ring(OLD), handshake_s=0.2), Hub()
    listening.open(hub, asyncio.get_running_loop())
    try:
        peer = SpPeer(listening.url)
        await to_thread(peer.send, Session(ring(OLD), False, bytes(16)).hello)
        assert await to_thread(peer.at_end)
        await until(lambda: "no handshake of keys within 0.2 s" in caplog.text)
        assert hub.pipes == ()
        peer.close()
    finally:
        listening.close()


class Signed:
    """A hand-made peer that has the key, and says what a test wants."""

    def __init__(self, url: str, secret: bytes, *first: bytes) -> None:
        self.peer, session = SpPeer(url), Session(ring(secret), False, b"n" * 16)
        self.peer.greeting()
        self.peer.send(session.hello)
        proof = session.meet(self.peer.receive())
        assert proof is not None
        assert session.signer is not None
        self.signer = session.signer
        self.peer.send(proof, *(self.record(message) for message in first))
        assert session.prove(self.peer.receive())

    def record(self, *messages: bytes) -> bytes:
        return self.signer.sign(from_payloads(messages).keep())


async def test_what_comes_with_the_proof_is_not_lost() -> None:
    listening, hub = ListenLink(TCP, keys=ring(OLD)), Hub()
    listening.open(hub, asyncio.get_running_loop())
    ear = Ear(hub)
    try:
        signed = await to_thread(Signed, listening.url, OLD, b"one", b"two")
        await until(lambda: ear.heard == [b"one", b"two"])
        signed.peer.close()
    finally:
        listening.close()


@pytest.mark.parametrize("attack", ["tampered", "replayed", "unsigned"])
async def test_a_message_that_the_other_end_did_not_sign_ends_the_connection(
    attack: str, caplog: pytest.LogCaptureFixture
) -> None:
    listening, hub = ListenLink(TCP, keys=ring(OLD)), Hub()
    listening.open(hub, asyncio.get_running_loop())
    ear = Ear(hub)
    try:
        signed = await to_thread(Signed, listening.url, OLD)
        good = signed.record(b"good")
        bad = {"replayed": good, "tampered": signed.record(b"bad")[:-1] + b"D", "unsigned": b"bad"}[attack]
        await to_thread(signed.peer.send, good, bad, signed.record(b"late"))
        assert await to_thread(signed.peer.at_end)
        await until(lambda: len(hub.pipes) == 1)
        assert ear.heard == [b"good"]
        assert hub.accounts()[TCP].stats.rejected == {"forged": 1}
        assert "closed: a message that its other end did not sign" in caplog.text
        signed.peer.close()
    finally:
        listening.close()


async def test_keys_change_one_gateway_at_a_time_and_no_connection_ends() -> None:
    rings = [ring(OLD), ring(OLD, NEW), ring(NEW, OLD), ring(NEW)]
    async with linked(rings[0], rings[0]) as (here, near, there, far):
        await up(near, far)
        said = 0
        for step in (1, 2):
            for link in (near, far):
                pipes = set(link.pipes)
                assert link.revise(ListenLink(TCP, keys=rings[step]))
                assert link.pipes == pipes
                here.say(b"%d" % said)
                said += 1
                await until(partial(all_heard, there, said))
        far.losses = 0
        near.revise(ListenLink(TCP, keys=rings[3]))  # the connection relies on the old key alone
        await until(lambda: far.losses == 1)
        await up(near, far)
        pipes = set(near.pipes)
        far.revise(DialLink("tcp://127.0.0.1:1", keys=rings[3]))
        assert near.pipes == pipes
        assert far.losses == 1
        here.say(b"new")
        await until(lambda: there.heard[-1] == b"new")


@pytest.mark.parametrize("change", [(ring(OLD), None), (None, ring(OLD))])
async def test_connections_end_when_keys_come_or_go(change: tuple[Keyring | None, Keyring | None]) -> None:
    async with linked(change[0], change[0]) as (here, near, there, far):
        await up(near, far)
        far.revise(DialLink("tcp://127.0.0.1:1", keys=change[1]))
        near.revise(ListenLink(TCP, keys=change[1]))
        assert not any(pipe.ready for link in (near, far) for pipe in link.pipes)
        await up(near, far)
        here.say(b"again")
        await until(lambda: there.heard == [b"again"])


async def test_what_waits_signed_can_be_taken_back_and_the_rest_arrives_verified() -> None:
    async with linked(ring(OLD), ring(OLD), queue_bytes=64 << 20) as (here, near, there, far):
        await up(near, far)
        pipe, said = ready(near), [b"%07d" % number + bytes(993) for number in range(20_000)]
        ready(far).pause()
        for start in range(0, len(said), 500):
            here.say(*said[start : start + 500])
        assert pipe.stats.queued
        purged = pipe.purge("fenced")
        assert purged == said[len(said) - len(purged) :]
        assert 0 < len(purged) < len(said)
        assert pipe.stats.balance() == 0
        assert pipe.stats.dropped == {"fenced": len(purged)}
        here.say(b"after")
        ready(far).resume()
        await until(lambda: there.heard[-1:] == [b"after"])
        assert there.heard == [*said[: len(said) - len(purged)], b"after"]
        assert (pipe.stats.balance(), pipe.stats.sent) == (0, len(there.heard))


async def test_a_full_queue_drops_and_what_comes_later_is_still_verified() -> None:
    async with linked(ring(OLD), ring(OLD), queue_bytes=1 << 20, message_bytes=1 << 10) as (
        here,
        near,
        there,
        far,
    ):
        await up(near, far)
        pipe = ready(near)
        ready(far).pause()
        for number in range(40_000):
            here.say(b"%07d" % number + bytes(1000))
        dropped = pipe.stats.dropped["queue full"]
        ready(far).resume()
        await until(lambda: not pipe.stats.queued)
        here.say(b"after")
        await until(lambda: there.heard[-1:] == [b"after"])
        assert len(there.heard) == 40_001 - dropped
        assert pipe.stats.balance() == 0


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
async def test_the_longest_message_passes_and_a_longer_one_ends_the_connection(scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:0" + ("/" if scheme == "ws" else "")
    for limit in (100, 100_000):
        async with linked(ring(OLD), ring(OLD), url, message_bytes=limit) as (here, near, there, far):
            await up(near, far)
            here.say(b"", bytes(limit))
            await until(lambda: len(there.heard) == 2)
            here.say(bytes(limit + 1))
            await until(lambda: far.losses == 1)
            assert there.heard == [b"", bytes(limit)]
