"""Canaries are known, tell their way, resemble a suspect, and of two that meet the lower one goes on."""

from itertools import count

from bus.watch.canaries import (
    CANARY_S,
    NONCE_BYTES,
    PASSED,
    SPENT_S,
    TOKEN,
    YIELDS,
    Canaries,
    crossed,
    has_crossed,
    is_canary,
    is_probe,
    name_of,
)
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack, unpack

READING = pack(1, (7,), b"21.5")


def canaries(first: int = 1) -> Canaries[str]:
    numbers = count(2 * first, 2)
    return Canaries[str](lambda: next(numbers).to_bytes(NONCE_BYTES, "big"))


def one_of(made: Canaries[str], way: str = "a", like: bytes = READING, now: float = 0.0) -> bytes:
    return made.make(made.claim or made.new_claim(now), like, way, now)


def test_a_canary_looks_like_its_suspect_so_that_filters_let_it_by() -> None:
    assert unpack(one_of(canaries())).tokens == (7, TOKEN)
    assert unpack(one_of(canaries(), like=pack(1, range(255)))).tokens == (*range(254), TOKEN)
    assert is_canary(one_of(canaries(), like=b"no frame"))


def test_a_canary_is_known_in_an_envelope_and_as_part_of_a_buffer() -> None:
    canary = one_of(canaries())
    assert is_canary(wrap(canary, Envelope(1, 2)))
    assert is_canary(memoryview(canary))
    assert not is_canary(canary[:-1])
    assert not any(map(is_canary, (b"", READING, canary + b"x")))


def test_a_canary_tells_by_which_way_it_went_out_and_how_often_it_came_back() -> None:
    made = canaries()
    for way in "ab":
        canary = one_of(made, way)
        for times in (1, 2):
            sent = made.find(wrap(canary, Envelope(1, 2)))
            assert sent is not None
            assert (sent.way, sent.like, sent.returns) == (way, READING, times)
    assert made.find(READING) is None


def test_a_marked_canary_is_known_as_ours_and_as_marked() -> None:
    made = canaries()
    canary = one_of(made)
    marked = crossed(canary)
    sent = made.find(wrap(marked, Envelope(1, 2)))
    assert sent is not None
    assert sent.way == "a"
    assert [has_crossed(message) for message in (canary, marked, crossed(marked))] == [False, True, True]
    assert is_canary(marked)
    assert Canaries[str](lambda: b"\xff" * NONCE_BYTES).find(marked) is None


def test_a_canary_and_its_marked_form_pass_once_each() -> None:
    made, foreign = canaries(), one_of(canaries(7))
    assert [made.is_new(one, 0.0) for one in (foreign, crossed(foreign)) * 2] == [True, True, False, False]


def test_who_heard_one_canary_cannot_make_that_of_another_way() -> None:
    made = canaries()
    forged = one_of(made)[:-NONCE_BYTES] + bytes(NONCE_BYTES)
    assert made.find(forged) is None


def test_a_claim_ends_soon_and_a_canary_is_known_for_longer() -> None:
    made = canaries()
    canary = one_of(made)
    made.expire(CANARY_S)
    assert made.claim
    made.expire(CANARY_S + 0.01)
    assert not made.claim
    made.expire(SPENT_S)
    assert made.find(canary)
    made.expire(SPENT_S + 0.01)
    assert made.find(canary) is None
    assert not made.alert


def test_of_two_claims_the_lower_one_goes_on() -> None:
    low, high = canaries(1), canaries(1000)
    of_low, of_high = one_of(low), one_of(high)
    assert low.wins(of_high)
    assert not high.wins(of_low)
    assert low.claim
    assert not high.claim
    assert not canaries().wins(of_low)  # it claims nothing, so it lets others go on


def test_canaries_that_somebody_makes_up_end_few_claims() -> None:
    made, forged = canaries(1000), one_of(canaries(1))
    results = []
    for _ in range(YIELDS + 1):
        made.new_claim(0.0)
        results.append(made.wins(forged))
    assert results == [False] * YIELDS + [True]


def test_a_canary_of_another_hub_passes_once() -> None:
    made, foreign = canaries(), one_of(canaries(7))
    assert [made.is_new(foreign, 0.0) for _ in range(3)] == [True, False, False]
    made.expire(SPENT_S + 0.01)
    assert made.is_new(foreign, SPENT_S + 0.01)


def test_the_canaries_of_others_that_are_remembered_are_bounded() -> None:
    made, source = canaries(), canaries(1)
    for _ in range(2 * PASSED):
        assert made.is_new(one_of(source), 0.0)
    last = one_of(source)
    assert [made.is_new(last, 0.0) for _ in range(2)] == [True, True]


def test_probes_are_told_from_claims() -> None:
    made = Canaries[str](lambda: b"\xff" * NONCE_BYTES)
    probe = made.make(made.new_probe(), READING, "a", 0.0)
    claim = one_of(made)
    assert is_probe(probe)
    assert not is_probe(claim)
    assert name_of(wrap(claim, Envelope(1, 2))) == made.claim
