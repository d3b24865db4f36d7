"""Signed records: every message comes out once and in order, and what somebody else made of them does not."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.keys import Keyring
from bus.wire.batch import LENGTH_BYTES, Batch, from_payloads, payloads
from bus.wire.envelope import is_enveloped
from bus.wire.frame import is_frame
from bus.wire.signed import (
    HEAD_BYTES,
    HELLO,
    HELLO_BYTES,
    NONCE_BYTES,
    RECORD_BYTES,
    Session,
    Signer,
    Verifier,
    begins_with_hello,
    record_bytes,
)
from tests.helpers import ROOT

OLD, NEW = Keyring((b"o" * 32,)), Keyring((b"n" * 32,))
LIMIT = 1 << 20
Pair = tuple[Session, Session]


def pair(dials: Keyring = OLD, listens: Keyring = OLD) -> Pair:
    """Return both ends of a connection that have met; neither has had the other's proof."""
    nonce = random.Random(len(dials.names)).randbytes
    return Session(dials, False, nonce(16)), Session(listens, True, nonce(16))


def joined(dials: Keyring = OLD, listens: Keyring = OLD) -> tuple[Signer, Verifier]:
    """Return what signs at the dialling end and what verifies it at the other."""
    near, far = pair(dials, listens)
    proof = near.meet(far.hello)
    assert far.meet(near.hello)
    assert proof
    assert far.prove(proof)
    assert near.signer
    assert far.verifier
    return near.signer, far.verifier


def test_a_hello_is_no_frame_and_no_envelope_whatever_the_nonce() -> None:
    for fill in range(256):
        hello = Session(OLD, True, bytes([fill]) * NONCE_BYTES).hello
        assert not is_frame(hello)
        assert not is_enveloped(hello)
        assert begins_with_hello(from_payloads((hello, b"x")))
    assert not begins_with_hello(from_payloads((HELLO, b"x" * HELLO_BYTES)))
    assert not begins_with_hello(from_payloads((b"x" * HELLO_BYTES,)))


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 40_000), st.integers(0, 3))
def test_what_is_signed_comes_out_as_it_was(small: list[bytes], size: int, place: int) -> None:
    messages = [*small * 40, b""]
    messages.insert(place, bytes(size))
    signer, verifier = joined()
    for batch in (from_payloads(messages), from_payloads(messages[:1])):
        records = signer.records(batch)
        longest = max(len(record) for record in payloads(records))
        assert longest <= record_bytes(max(map(len, messages)))
        found, whole = verifier.messages(records, LIMIT)
        assert whole
        assert found
        assert payloads(found) == payloads(batch)
        assert found.count == batch.count


def test_a_record_costs_twelve_bytes_and_the_length() -> None:
    signer, _ = joined()
    assert len(payloads(signer.records(from_payloads((b"hello",))))[0]) == 5 + LENGTH_BYTES + HEAD_BYTES
    many = signer.records(from_payloads([bytes(56)] * 1000))
    assert many.count == -(-64_000 // RECORD_BYTES) + (64_000 // RECORD_BYTES * RECORD_BYTES < 64_000) - 1


def test_the_longest_record_holds_16_kib_or_one_longer_message() -> None:
    room = RECORD_BYTES - LENGTH_BYTES
    assert RECORD_BYTES == 16_384
    assert record_bytes(0) == record_bytes(room) == RECORD_BYTES + 12
    assert record_bytes(room + 1) == RECORD_BYTES + 13


def test_no_messages_are_no_record() -> None:
    signer, _ = joined()
    records = signer.records(from_payloads(()))
    assert (records.count, records.data) == (0, b"")


def flipped(records: list[bytes], chance: random.Random) -> list[bytes]:
    number = chance.randrange(len(records))
    bit = chance.randrange(8 * len(records[number]))
    value = int.from_bytes(records[number], "big") ^ 1 << bit
    return [*records[:number], value.to_bytes(len(records[number]), "big")]


def replayed(records: list[bytes], chance: random.Random) -> list[bytes]:
    return [*records, chance.choice(records)]


def swapped(records: list[bytes], chance: random.Random) -> list[bytes]:
    first = chance.randrange(len(records) - 1)
    return [*records[:first], records[first + 1], records[first]]


def shortened(records: list[bytes], chance: random.Random) -> list[bytes]:
    number = chance.randrange(len(records))
    return [*records[:number], records[number][: chance.randrange(len(records[number]))]]


def invented(records: list[bytes], chance: random.Random) -> list[bytes]:
    return [*records, chance.randbytes(chance.randrange(100))]


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("change", [flipped, replayed, swapped, shortened, invented])
def test_nothing_passes_behind_what_somebody_changed(
    change: Callable[[list[bytes], random.Random], list[bytes]], seed: int
) -> None:
    chance = random.Random(seed)
    signer, verifier = joined()
    said = [bytes((number,)) + chance.randbytes(chance.randrange(60)) for number in range(8)]
    records = [payloads(signer.records(from_payloads((message,))))[0] for message in said]
    found, whole = verifier.messages(from_payloads(change(records, chance)), LIMIT)
    heard = payloads(found) if found else []
    assert not whole
    # Of swapped ones the later may come first, as if the earlier had been taken back: it is never heard then.
    assert heard == [message for message in said if message in heard]


def test_records_that_were_taken_back_leave_a_gap_and_no_fault() -> None:
    signer, verifier = joined()
    for _ in range(1000):
        signer.sign(b"never sent")
    found, whole = verifier.messages(signer.records(from_payloads((b"x",))), LIMIT)
    assert whole
    assert found
    assert payloads(found) == [b"x"]


def test_a_number_goes_on_beyond_its_lower_half_and_an_old_record_is_still_old() -> None:
    key = OLD.derive(b"one")
    first = Signer(key).sign(b"first")
    signer, verifier = Signer(key, (1 << 32) - 1), Verifier(key, (1 << 32) - 1)
    assert [verifier.verify(signer.sign(word)) for word in (b"a", b"b", b"c")] == [b"a", b"b", b"c"]
    assert verifier.verify(first) is None
    assert verifier.verify(Signer(key, 1 << 32).sign(b"again")) is None


def test_a_proof_is_of_one_connection_one_end_and_one_direction() -> None:
    near, far = pair()
    proof, answer = near.meet(far.hello), far.meet(near.hello)
    assert proof
    assert answer
    assert not near.prove(proof), "reflected"
    later = Session(OLD, True, b"another nonce 16")
    later.meet(near.hello)
    assert not later.prove(proof), "replayed to the same listener, which chose another nonce"
    other = Session(OLD, True, far.hello[len(HELLO) :])
    other.meet(far.hello)
    assert not other.prove(answer), "two connections of listeners joined to each other"
    assert far.prove(proof)
    assert near.prove(answer)


def test_any_key_of_a_ring_is_verified_and_the_first_signs() -> None:
    both, turned = Keyring((b"o" * 32, b"n" * 32)), Keyring((b"n" * 32, b"o" * 32))
    for mine, theirs in ((OLD, both), (both, turned), (NEW, turned), (turned, both)):
        signer, verifier = joined(mine, theirs)
        assert verifier.verify(signer.sign(b"x")) == b"x"
    near, far = pair(NEW, OLD)
    proof = near.meet(far.hello)
    assert far.meet(near.hello)
    assert proof
    assert not far.prove(proof)


def test_a_session_knows_the_keys_that_it_relies_on() -> None:
    near, far = pair(Keyring((b"n" * 32, b"o" * 32)), Keyring((b"o" * 32, b"n" * 32)))
    assert not far.is_trusted(OLD)
    proof = near.meet(far.hello)
    assert far.meet(near.hello)
    assert proof
    assert far.prove(proof)
    assert set(far.keys) == {*OLD.names, *NEW.names}
    assert far.is_trusted(Keyring((b"x" * 32, b"n" * 32, b"o" * 32)))
    assert far.is_trusted(Keyring((b"n" * 32, b"o" * 32)))
    assert not far.is_trusted(NEW)
    assert not far.is_trusted(None)


@pytest.mark.parametrize("message", [b"", b"x", bytes(HELLO_BYTES), HELLO, HELLO + bytes(17)])
def test_what_is_no_hello_is_not_met(message: bytes) -> None:
    assert Session(OLD, True, bytes(16)).meet(message) is None


def test_a_record_of_the_other_end_that_holds_no_whole_messages_is_refused() -> None:
    signer, verifier = joined()
    whole = from_payloads((b"12345",)).keep()
    for body in (b"", whole[:-1], whole + b"\0", (1 << 63).to_bytes(8, "big")):
        assert verifier.messages(from_payloads((signer.sign(body),)), LIMIT) == (None, False)
    assert verifier.messages(from_payloads((signer.sign(whole),)), 4) == (None, False)
    found, good = verifier.messages(from_payloads((signer.sign(whole),)), 5)
    assert good
    assert isinstance(found, Batch)


def test_each_message_of_a_record_may_be_as_long_as_the_longest() -> None:
    signer, verifier = joined()
    said = [b"12345", b"", b"54321", b"123"]
    found, whole = verifier.messages(signer.records(from_payloads(said)), 5)
    assert (whole, found and payloads(found)) == (True, said)
    assert verifier.messages(signer.records(from_payloads([*said, b"123456"])), 5) == (None, False)


def test_the_page_has_the_bytes() -> None:
    page = (ROOT / "docs" / "wire" / "signed.md").read_text()
    ring = Keyring((bytes(range(32)),))
    near, far = Session(ring, False, b"\x11" * 16), Session(ring, True, b"\x22" * 16)
    proof, answer = near.meet(far.hello), far.meet(near.hello)
    assert proof
    assert answer
    assert near.signer
    message = bytes.fromhex("e108f011a1b2c3d4000000070202000511223344556677" + "8868656c6c6f")
    record = payloads(near.signer.records(from_payloads((message,))))[0]
    shown = page.replace(" ", "").replace("|", "")
    for data in (near.hello, proof, answer, record):
        assert data.hex() in shown
    assert ring.names[0] in page
