"""Signed claims and grants: what counts, and what does not, on which connection."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from secrets import token_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.keys import SECRET_BYTES, Keyring
from bus.leases.service import LeasingBroker
from bus.leases.settings import BrokerSettings
from bus.leases.signed import (
    NONCE_BYTES,
    Session,
    is_signed,
    pack_answer,
    pack_ask,
    unpack_answer,
    unpack_ask,
)
from bus.leases.wire import CLAIM_TYPE, GRANT_TYPE, Claim, Grant, pack_claim, pack_grant, unpack_claim
from bus.tmq.wire import Cutter
from bus.wire.frame import BRIDGE, BROKER, CACHE, pack
from tests.bus.leases.standby import Standby, words
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import until

ONE, OTHER = bytes(SECRET_BYTES), bytes(range(SECRET_BYTES))
A, B = bytes(NONCE_BYTES), bytes(range(NONCE_BYTES))
CLAIM = pack_claim(Claim((1, 2), "bridge", 7, 1, 8, 100, 42, ready=True, name="gw-a"))
GRANT = pack_grant(Grant((1, 2), "bridge", granted=True, holder=7, epoch=9, lease_ms=250, number=42))


def ends(theirs: bytes = ONE, ours: bytes = ONE) -> tuple[Session, Session]:
    """Return both ends of a connection: the candidate's and the broker's."""
    return Session(Keyring([ours]), A, B, CLAIM_TYPE), Session(Keyring([theirs]), A, B, GRANT_TYPE)


def test_both_directions_come_through_as_they_were() -> None:
    candidate, broker = ends()
    for _ in range(3):
        assert broker.open(candidate.seal(CLAIM)) == (CLAIM, "")
        assert candidate.open(broker.seal(GRANT)) == (GRANT, "")


def test_the_longest_claim_can_be_signed() -> None:
    longest = pack_claim(Claim(tuple(range(255)), "b" * 255, 7, name="n" * 255))
    candidate, broker = ends()
    assert broker.open(candidate.seal(longest)) == (longest, "")


def test_a_signed_claim_looks_as_its_page_says() -> None:
    candidate, _ = ends()
    sealed = candidate.seal(CLAIM)
    head = len(CLAIM) - len(b"bridgegw-a") - 17
    assert sealed[:4] == CLAIM[:2] + (int.from_bytes(CLAIM[2:4], "big") + 16).to_bytes(2, "big")
    assert sealed[head] == 2
    assert sealed[head + 1 : -16] == CLAIM[head + 1 :]
    assert sealed[-16:-8] == (1).to_bytes(8, "big")
    assert unpack_claim(sealed) is None  # an older broker refuses it


def test_the_example_of_the_page_is_right() -> None:
    text = Path("docs/wire/lease.md").read_text().replace(" ", "")
    asked, answered = bytes([0x11]) * NONCE_BYTES, bytes([0x22]) * NONCE_BYTES
    claim = pack_claim(Claim((0x11223344,), "fridge", 0xA1B2C3D4, 1, 7, 100, 42, ready=True, name="gw-b"))
    sealed = Session(Keyring([OTHER]), asked, answered, CLAIM_TYPE).seal(claim)
    for frame in (pack_ask(asked), pack_answer("nonce", answered), sealed):
        assert f"\n{frame.hex()}\n" in text


@pytest.mark.parametrize("place", [0, 3, 5, 13, 20, 40, -17, -9, -1])
def test_a_changed_byte_is_noticed_and_nothing_more_is_taken(place: int) -> None:
    candidate, broker = ends()
    sealed = bytearray(candidate.seal(CLAIM))
    sealed[place] ^= 1
    taken, fault = broker.open(bytes(sealed))
    assert taken == b""
    assert fault in ("forged", "unsigned")
    if fault == "forged":
        assert broker.open(candidate.seal(CLAIM)) == (b"", "forged")


def test_what_is_not_signed_is_refused_and_changes_nothing() -> None:
    candidate, broker = ends()
    assert broker.open(CLAIM) == (b"", "unsigned")
    assert broker.open(candidate.seal(CLAIM)) == (CLAIM, "")


def test_a_claim_counts_once_and_some_may_be_missing() -> None:
    candidate, broker = ends()
    first, _, third = (candidate.seal(CLAIM) for _ in range(3))
    assert broker.open(third) == (CLAIM, "")
    assert broker.open(first) == broker.open(third) == (b"", "repeated")


def test_another_connection_and_the_other_direction_have_other_keys() -> None:
    candidate, _broker = ends()
    sealed = candidate.seal(CLAIM)
    for nonces in ((B, B), (A, A), (B, A)):
        assert Session(Keyring([ONE]), *nonces, GRANT_TYPE).open(sealed) == (b"", "forged")
    assert candidate.open(sealed) == (b"", "forged")


def test_other_keys_are_refused_and_one_of_several_is_enough() -> None:
    candidate, broker = ends(theirs=OTHER)
    assert broker.open(candidate.seal(CLAIM)) == (b"", "forged")
    broker.revise(Keyring([OTHER, ONE]))
    assert broker.open(candidate.seal(CLAIM)) == (CLAIM, "")
    candidate.revise(Keyring([ONE, OTHER]))
    assert candidate.open(broker.seal(GRANT)) == (GRANT, "")
    broker.revise(Keyring([OTHER]))
    assert broker.open(candidate.seal(CLAIM)) == (b"", "forged")


def test_questions_and_answers_come_through() -> None:
    assert unpack_ask(pack_ask(B)) == B
    assert unpack_answer(pack_answer("nonce", B)) == ("nonce", B)
    assert unpack_answer(pack_answer("must be signed")) == ("must be signed", b"")
    assert unpack_answer(pack_answer("no key")) == ("no key", b"")
    for frame in (pack_ask(B[:-1]), pack(BRIDGE | BROKER | CACHE, (1,), b"\1" + B), CLAIM, b""):
        assert unpack_ask(frame) is None
    for frame in (pack_answer("nonce", B[1:]), pack_answer("no key", B), pack(BRIDGE | CACHE, (), b"\1\3")):
        assert unpack_answer(frame) is None


@given(st.binary(max_size=80), st.sampled_from([CLAIM_TYPE, GRANT_TYPE, BRIDGE | CACHE]), st.booleans())
def test_no_bytes_make_it_raise_and_none_of_them_are_taken(data: bytes, kind: int, packed: bool) -> None:
    frame = pack(kind, (1,), data) if packed else data
    assert ends()[1].open(frame)[0] == b""
    unpack_ask(frame)
    unpack_answer(frame)
    is_signed(frame)


Serve = Callable[[Keyring | None], LeasingBroker]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    made: list[LeasingBroker] = []

    def start(keys: Keyring | None) -> LeasingBroker:
        made.append(LeasingBroker(["tcp://127.0.0.1:0"], keys=keys))
        made[-1].open(asyncio.get_running_loop())
        return made[-1]

    yield start
    for service in made:
        service.close()


async def test_a_candidate_with_the_key_gets_the_lease_and_keeps_it_through_a_change_of_keys(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_in_vain(monkeypatch)  # no attempt to connect ends because this process had no turn
    service = serve(Keyring([ONE]))
    one = Standby(service.broker.addresses[0], Keyring([ONE]))
    await one.granted()
    connected = service.broker.counts["accepted"]
    for brokers, candidates in (([ONE, OTHER], [ONE]), ([ONE, OTHER], [OTHER, ONE]), ([OTHER], [OTHER])):
        service.table.rejected.clear()
        one.link.sign(Keyring(candidates))
        service.revise((), BrokerSettings(), Keyring(brokers))
        heard_s = one.candidate.views[0].heard_s

        def heard(before_s: float = heard_s) -> bool:
            one.link.claim()
            return one.candidate.views[0].heard_s > before_s

        await until(heard)
        assert service.rejected == {}
    assert service.broker.counts["accepted"] == connected
    one.link.close()


@pytest.mark.parametrize(
    ("brokers", "candidates", "reason", "told"),
    [
        (ONE, None, "unsigned", "it takes only signed claims: give this gateway its keys"),
        (ONE, OTHER, "forged", "it does not answer to claims that are signed with the keys"),
        (None, ONE, "", "it has no keys, and cannot sign its grants: give it the keys of this gateway"),
    ],
)
async def test_ends_that_do_not_agree_are_refused_and_both_say_so(
    serve: Serve,
    caplog: pytest.LogCaptureFixture,
    brokers: bytes | None,
    candidates: bytes | None,
    reason: str,
    told: str,
) -> None:
    with caplog.at_level(logging.WARNING):
        service = serve(None if brokers is None else Keyring([brokers]))
        one = Standby(service.broker.addresses[0], None if candidates is None else Keyring([candidates]))
        if reason:
            await one.refused(service, reason)
            assert f"tmq broker: refused from 127.0.0.1: {reason}" in words(caplog, "buscoupler.tmq")

        def said() -> bool:
            one.link.claim()
            return any(told in text for text in words(caplog, "buscoupler.failover"))

        await until(said)
    assert one.candidate.views[0].grant is None
    assert not service.leases()
    one.link.close()


async def test_a_broker_that_falls_silent_after_its_grants_is_not_said_to_have_other_keys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    grant = Grant((1,), "x", holder=8, epoch=5, lease_ms=20, number=1)
    calls: list[asyncio.StreamWriter] = []

    async def grant_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(writer)
        nonce = next(filter(None, map(unpack_ask, Cutter().cut(await reader.read(4096)))))
        session = Session(Keyring([ONE]), nonce, A, GRANT_TYPE)
        writer.write(pack_answer("nonce", A) + session.seal(pack_grant(grant)))

    server = await asyncio.start_server(grant_once, "127.0.0.1", 0)
    one = Standby(server.sockets[0].getsockname(), Keyring([ONE]))

    def dialled_again() -> bool:
        one.link.claim()
        return len(calls) > 1

    await until(dialled_again)
    assert words(caplog, "buscoupler.failover") == []
    one.link.close()
    for writer in calls:
        writer.close()
    server.close()


async def test_a_stranger_gets_neither_a_lease_nor_a_word_about_it(serve: Serve) -> None:
    service = serve(Keyring([ONE]))
    one = Standby(service.broker.addresses[0], Keyring([ONE]))
    await one.granted()
    with socket.create_connection(service.broker.addresses[0]) as stranger:
        usurper = Claim((1,), "x", 9, epoch=0xFFFFFFFF, ready=True, holding=True)
        stranger.sendall(3 * pack_claim(usurper) + pack_ask(token_bytes(NONCE_BYTES)) + pack_claim(usurper))
        await until(lambda: service.rejected.get("unsigned", 0) >= 4)
        stranger.setblocking(False)
        frames = Cutter().cut(await asyncio.get_running_loop().sock_recv(stranger, 4096))
    assert GRANT_TYPE not in [frame[0] for frame in frames]
    assert [answer and answer[0] for frame in frames if (answer := unpack_answer(frame))] == [
        "must be signed",
        "nonce",
    ]
    await one.granted()
    one.link.close()


async def test_a_false_broker_cannot_make_a_candidate_forward(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_in_vain(monkeypatch)
    grant = Grant((1,), "x", granted=True, alone=True, holder=7, epoch=5, lease_ms=60_000, number=1)
    calls: list[asyncio.StreamWriter] = []

    def lie(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(writer)
        writer.write(pack_answer("nonce", A) if len(calls) % 2 else b"")
        writer.write(pack_grant(grant) + ends()[1].seal(pack_grant(grant)))

    server = await asyncio.start_server(lie, "127.0.0.1", 0)
    with caplog.at_level(logging.WARNING):
        one = Standby(server.sockets[0].getsockname(), Keyring([ONE]))
        wanted = "grants are refused: forged", "grants are refused: unsigned"

        def said() -> bool:
            text = "\n".join(words(caplog, "buscoupler.failover"))
            return all(word in text for word in wanted)

        await until(said)
    assert not one.candidate.holding
    assert one.candidate.views[0].grant is None
    one.link.close()
    for writer in calls:
        writer.close()
    server.close()
