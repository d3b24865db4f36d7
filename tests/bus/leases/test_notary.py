"""A broker's ends of signed connections: who is asked, what is refused, and what is said about it once."""

import pytest

from bus.keys import SECRET_BYTES, TAG_BYTES, Keyring
from bus.leases.signed import (
    ANSWER_TYPE,
    ASK_TYPE,
    NONCE_BYTES,
    Notary,
    Session,
    is_signed,
    pack_answer,
    pack_ask,
    unpack_answer,
    unpack_ask,
)
from bus.leases.wire import CLAIM_TYPE, GRANT_TYPE, Claim, Grant, pack_claim, pack_grant
from bus.wire.frame import pack, unpack

KEYS, OTHERS = Keyring([bytes(SECRET_BYTES)]), Keyring([bytes(range(SECRET_BYTES))])
NONCE = bytes(range(NONCE_BYTES))
CLAIM = pack_claim(Claim((1, 2), "bridge", 7, ready=True))
GRANT = pack_grant(Grant((1, 2), "bridge", granted=True, holder=7))


def joined(notary: Notary, who: object) -> Session:
    """Return the candidate's end of a connection to a broker that has keys."""
    answer = unpack_answer(notary.ask(NONCE, who))
    assert answer is not None
    assert answer[0] == "nonce"
    return Session(KEYS, NONCE, answer[1], CLAIM_TYPE)


def test_who_asks_gets_a_nonce_once_and_both_ends_sign_from_then_on() -> None:
    notary = Notary(KEYS, bytes)
    candidate = joined(notary, "a")
    assert notary.ask(NONCE, "a") == b""
    assert notary.open(candidate.seal(CLAIM), "a") == (CLAIM, "")
    assert notary.open(CLAIM, "a", proven=True) == (b"", "unsigned")
    assert candidate.open(notary.seal(GRANT, "a")) == (GRANT, "")
    assert notary.seal(GRANT, "b") == GRANT


def test_who_asks_a_broker_without_keys_is_told_so_each_time() -> None:
    notary = Notary(None, bytes)
    assert notary.ask(NONCE, "a") == notary.ask(NONCE, "a") == pack_answer("no key")


@pytest.mark.parametrize(
    ("keys", "strict", "proven", "fault"),
    [
        (None, False, False, ""),
        (None, True, False, "unsigned"),
        (None, True, True, ""),
        (KEYS, False, False, "unsigned"),
        (KEYS, True, False, "unsigned"),
        (KEYS, False, True, ""),
    ],
)
def test_a_claim_that_is_not_signed_counts_without_keys_or_with_a_certificate(
    keys: Keyring | None, strict: bool, proven: bool, fault: str
) -> None:
    found = (b"", fault) if fault else (CLAIM, "")
    assert Notary(keys, bytes, strict).open(CLAIM, "a", proven) == found
    revised = Notary(OTHERS, bytes)
    revised.revise(keys, strict)
    assert revised.open(CLAIM, "a", proven) == found
    assert Notary(None, bytes).open(CLAIM, "a") == (CLAIM, "")


def test_a_broker_is_not_strict_and_a_connection_not_proven_unless_that_is_said() -> None:
    notary = Notary(None, bytes, strict=True)
    assert notary.open(CLAIM, "a") == (b"", "unsigned")
    notary.revise(None)
    assert notary.open(CLAIM, "a") == (CLAIM, "")


def test_a_claim_that_is_signed_is_refused_where_there_are_no_keys() -> None:
    sealed = Session(KEYS, NONCE, NONCE, CLAIM_TYPE).seal(CLAIM)
    for proven in (False, True):
        assert Notary(None, bytes).open(sealed, "a", proven) == (b"", "signed")


def test_who_does_not_sign_is_told_once_and_again_with_other_keys() -> None:
    notary, told = Notary(KEYS, bytes), pack_answer("must be signed")
    assert [notary.first_refusal("a"), notary.first_refusal("a"), notary.first_refusal("b")] == [
        told,
        b"",
        told,
    ]
    notary.revise(OTHERS)
    assert notary.first_refusal("a") == told
    notary.forget("a")
    assert notary.first_refusal("a") == told
    joined(Notary(KEYS, bytes), "c")
    notary.ask(NONCE, "c")
    assert notary.first_refusal("c") == b""


def test_other_keys_hold_for_connections_that_are_open_and_none_end_them() -> None:
    notary = Notary(KEYS, bytes)
    candidate = joined(notary, "a")
    notary.revise(OTHERS)
    assert notary.open(candidate.seal(CLAIM), "a") == (b"", "forged")
    candidate.revise(OTHERS)
    notary.revise(OTHERS)
    assert notary.open(candidate.seal(CLAIM), "a") == (CLAIM, "")
    notary.revise(None)
    assert notary.seal(GRANT, "a") == GRANT
    notary.forget("a")
    notary.forget("a")


def test_a_count_is_heard_that_is_above_the_last_one() -> None:
    candidate, broker = (Session(KEYS, NONCE, NONCE, kind) for kind in (CLAIM_TYPE, GRANT_TYPE))
    assert broker.heard == 0
    for count in (1, 2):
        broker.open(candidate.seal(CLAIM))
        assert broker.heard == count


def test_the_types_and_sizes_of_questions_and_answers() -> None:
    assert (ASK_TYPE, ANSWER_TYPE, NONCE_BYTES, TAG_BYTES) == (0xC4, 0x84, 16, 8)
    assert pack_ask(NONCE) == bytes.fromhex("c4000011" + "01") + NONCE
    assert pack_answer("nonce", NONCE) == bytes.fromhex("84000012" + "0100") + NONCE
    assert pack_answer("no key") == bytes.fromhex("84000002" + "0102")
    assert unpack_ask(pack(ASK_TYPE, (), b"\x02" + NONCE)) is None
    assert unpack_ask(pack(ASK_TYPE, (), b"\x01" + NONCE + b"x")) is None
    assert unpack_ask(pack(ANSWER_TYPE, (), b"\x01" + NONCE)) is None
    assert unpack_ask(pack(ASK_TYPE, ())) is None
    for data in (b"", b"\x01", b"\x02\x02", b"\x01\x03", b"\x01\x02x", b"\x01\x00"):
        assert unpack_answer(pack(ANSWER_TYPE, (), data)) is None
    assert unpack_answer(pack(ANSWER_TYPE, (1,), b"\x01\x02")) is None


@pytest.mark.parametrize(
    ("kind", "data_bytes", "version", "signed"),
    [
        (CLAIM_TYPE, 17, 2, True),
        (GRANT_TYPE, 17, 2, True),
        (CLAIM_TYPE, 16, 2, False),
        (CLAIM_TYPE, 17, 1, False),
        (CLAIM_TYPE, 17, 3, False),
        (ASK_TYPE, 17, 2, False),
    ],
)
def test_what_has_the_form_of_a_signed_claim(kind: int, data_bytes: int, version: int, signed: bool) -> None:
    frame = pack(kind, (1,), bytes((version,)) + bytes(data_bytes - 1))
    assert is_signed(frame) == signed
    assert not is_signed(frame[:-1])
    assert unpack(frame).data[0] == version
