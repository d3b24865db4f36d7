"""Seals: what a sender with our keys says counts once; what others make of it does not, nor is it kept."""

import random
from itertools import pairwise

import pytest

from bridges.media.medium import CLOCK_S, SEAL_BYTES
from bridges.media.seals import RECENT, SENDERS, WORDS, Seals, unsealed
from bus.keys import Keyring
from tests.bridges.support import FRAME, MESSAGE, frame
from tests.helpers import ROOT

OLD, NEW = Keyring((b"o" * 32,)), Keyring((b"n" * 32,))
NOW_S = 1_764_000_000.0


class End:
    """One participant, whose clock a test sets."""

    def __init__(self, sender: int, ring: Keyring = OLD, purpose: str = "can", now_s: float = NOW_S) -> None:
        self.now_s, self.told = now_s, list[str]()
        self.rejected: dict[str, int] = {}
        self.seals = Seals(ring, purpose, sender, lambda: self.now_s, self.rejected, self.told.append)

    def say(self, *messages: bytes) -> list[bytes]:
        return [self.seals.seal(message) for message in messages]

    def hears(self, sealed: list[bytes]) -> list[bytes]:
        return self.seals.opened(sealed)


SAID = [frame(20 + number, number) for number in range(100)]


def test_what_is_sealed_is_heard_once_by_all_but_the_sender() -> None:
    near, far, third = End(1), End(2), End(3)
    sealed = near.say(*SAID)
    assert all(len(one) == len(message) + SEAL_BYTES for one, message in zip(sealed, SAID, strict=True))
    assert [unsealed(one) for one in sealed] == SAID
    assert far.hears(sealed) == third.hears(sealed) == SAID
    assert near.hears(sealed) == []
    assert near.rejected == {"echo": 100}
    assert far.hears(sealed) == []
    assert far.rejected == {"replayed": 100}
    assert far.told == ["replayed"]


@pytest.mark.parametrize("seed", range(30))
def test_no_change_of_a_bit_and_no_cut_verifies(seed: int) -> None:
    chance, near, far = random.Random(seed), End(1), End(2)
    for sealed in near.say(*SAID):
        bit = chance.randrange(8 * len(sealed))
        changed = (int.from_bytes(sealed, "big") ^ 1 << bit).to_bytes(len(sealed), "big")
        cut = sealed[: chance.randrange(1, len(sealed))]
        assert far.hears([changed, cut, cut + sealed, sealed + b"\0", b""]) == []
        assert far.hears([sealed]) == [unsealed(sealed)], "nothing of it was remembered"


def test_messages_may_overtake_each_other_a_little_and_never_count_twice() -> None:
    chance, near, far = random.Random(1), End(1), End(2)
    first, *sealed = near.say(*SAID)
    assert far.hears([first]) == SAID[:1]
    for start in range(0, len(sealed), RECENT - 1):
        some = sealed[start : start + RECENT - 1]
        mixed = [*some, *some]
        chance.shuffle(mixed)
        assert sorted(far.hears(mixed)) == sorted(map(unsealed, some))
    late = End(4)
    late.hears([sealed[0], *sealed[2:]])
    assert late.hears([sealed[1]]) == [], f"more than {RECENT} have come since"


def test_the_first_of_a_sender_must_be_of_about_now_and_what_follows_only_later() -> None:
    for off_s, counts in (
        (CLOCK_S - 1, True),
        (1 - CLOCK_S, True),
        (CLOCK_S + 1, False),
        (-CLOCK_S - 1, False),
    ):
        near, far = End(1, now_s=NOW_S + off_s), End(2)
        assert bool(far.hears(near.say(FRAME))) == counts
        assert far.told == ([] if counts else ["clock"])
    near, far = End(1), End(2)
    far.hears(near.say(FRAME))
    near.now_s -= 3600  # its clock is set back: its times go on
    far.now_s += 7200
    assert far.hears(near.say(*SAID)) == SAID


def test_times_of_a_number_grow_whatever_the_clock_does() -> None:
    near = End(1)
    times = dict[bytes, list[int]]()
    for off_s in (0, 0, 5, -100, 1e9, 0, 0, -3600, 3600, 0):
        near.now_s = NOW_S + off_s
        (said,) = near.say(FRAME)
        times.setdefault(said[-18:-14], []).append(int.from_bytes(said[-14:-8], "big"))
    assert all(one < other for row in times.values() for one, other in pairwise(row))


@pytest.mark.parametrize("wrong_s", [3600.0, 10 * 365 * 86400.0, 61.0])
@pytest.mark.parametrize("before", [0, 1])
def test_a_clock_that_was_ahead_and_is_right_again_is_heard_by_old_and_new_receivers(
    wrong_s: float, before: int
) -> None:
    near, old = End(1), End(2)
    assert len(old.hears(near.say(*SAID[:before]))) == before
    near.now_s += wrong_s
    wrong = near.say(FRAME)
    near.now_s -= wrong_s
    old.hears(wrong)
    new = End(3)
    assert new.hears(said := near.say(*SAID)) == SAID
    assert old.hears(said) == SAID
    assert near.hears([*wrong, *said]) == []
    assert set(near.rejected) == {"echo"}


def test_a_clock_that_was_wrong_from_the_start_is_set_back_as_soon_as_another_sender_has_its_time() -> None:
    near, old = End(1, now_s=NOW_S + 3600), End(2, now_s=NOW_S + 3600)
    old.hears(near.say(FRAME))
    near.now_s = NOW_S
    assert old.hears(near.say(*SAID)) == SAID, "it may be wrong now"
    new = End(3)
    assert new.hears(near.say(FRAME)) == []
    assert near.hears(new.say(FRAME)) == [FRAME]
    assert new.hears(near.say(*SAID)) == SAID


def test_time_that_passes_is_no_step() -> None:
    passed, off = [0.0], [0.0]
    near = Seals(OLD, "can", 1, lambda: NOW_S + passed[0] + off[0], {}, elapsed=lambda: passed[0])
    near.seal(FRAME)
    passed[0], off[0] = 1e6, 7200.0
    near.seal(FRAME)
    off[0] = 0.0
    far = End(2, now_s=NOW_S + passed[0])
    assert far.hears([near.seal(FRAME)]) == [FRAME]


def test_the_clock_of_a_receiver_may_be_set_as_one_likes_between_two_messages() -> None:
    near, far = End(1), End(2)
    far.hears(near.say(FRAME))
    for off_s in (-1e6, 1e6, 0):
        far.now_s = NOW_S + off_s
        assert far.hears(near.say(MESSAGE)) == [MESSAGE]


def test_the_numbers_of_the_document() -> None:
    assert (SEAL_BYTES, SENDERS, RECENT) == (18, 256, 64)


def test_a_time_is_that_of_the_clock_or_the_last_and_one() -> None:
    for now_s, times in ((0.0, ["000000000001", "000000000002"]), (1.5, ["0000000249f0", "0000000249f1"])):
        said = End(1, now_s=now_s).say(FRAME, FRAME)
        assert [one[-14:-8].hex() for one in said] == times


def test_from_2059_on_the_time_stays_as_it_is_and_nothing_raises() -> None:
    near, far = End(1, now_s=3e9), End(2, now_s=3e9)
    said = near.say(FRAME, MESSAGE)
    assert [one[-14:-8].hex() for one in said] == ["ffffffffffff"] * 2
    far.hears(said)
    assert set(far.rejected) == {"clock"}


def test_a_clock_may_be_off_by_just_60_s() -> None:
    for off_s in (CLOCK_S, -CLOCK_S):
        assert CLOCK_S == 60
        assert End(2).hears(End(1, now_s=NOW_S + off_s).say(FRAME)) == [FRAME]
        assert End(2).hears(End(1, now_s=NOW_S + off_s + 0.0001 * off_s).say(FRAME)) == []


def test_the_last_64_of_a_sender_may_overtake_each_other() -> None:
    near, far = End(1), End(2)
    first, *others = near.say(*SAID[:66])
    assert far.hears([first, *others[2:]]) == [SAID[0], *SAID[3:66]]  # 64 of them
    assert far.hears([others[1]]) == SAID[2:3]
    assert far.hears([first]) == []
    assert far.hears([others[0]]) == SAID[1:2], "only the first of all was older than 64"
    assert far.hears([others[0], others[1]]) == []


def test_a_seal_of_nothing_is_verified_too() -> None:
    near, far = End(1), End(2)
    (sealed,) = near.say(b"")
    assert len(sealed) == SEAL_BYTES
    assert far.hears([sealed]) == [b""]


def test_reasons_are_told_again_after_a_change_of_keys_and_an_echo_never() -> None:
    end = End(1)
    for _ in range(2):
        end.hears([FRAME, FRAME, *end.say(FRAME)])
        end.seals.rekey(OLD)
    assert end.told == ["unsigned", "unsigned"]
    assert end.rejected == {"unsigned": 4, "echo": 2}


def test_only_verified_senders_are_kept_and_a_bounded_number() -> None:
    far = End(2)
    sealed = [End(number + 10).say(FRAME)[0] for number in range(SENDERS + 5)]
    assert len(far.hears(sealed)) == SENDERS + 5
    strangers = [End(number, NEW).say(FRAME)[0] for number in range(100, 4000)]
    assert far.hears(strangers) == []
    assert far.hears(sealed[-SENDERS:]) == [], "those that were heard last are all known still"
    far.now_s += CLOCK_S + 1
    assert far.hears(sealed[:5]) == [], "a sender that was forgotten is as old as its message"
    assert far.rejected == {"forged": 3900, "replayed": SENDERS, "clock": 5}


def test_a_sender_that_goes_on_is_not_forgotten_for_new_ones() -> None:
    far, first = End(2), End(1)
    said = first.say(*SAID[:2])
    assert far.hears(said[:1]) == SAID[:1]
    far.hears([End(number + 10).say(FRAME)[0] for number in range(SENDERS - 1)])
    assert far.hears(said[1:]) == SAID[1:2]
    far.hears([End(number + 1000).say(FRAME)[0] for number in range(SENDERS - 1)])
    assert far.hears(said) == []
    assert far.rejected == {"replayed": 2}


def test_what_is_too_short_for_a_seal_is_refused_also_with_a_right_tag() -> None:
    far = End(2)
    assert far.hears([b"short" + OLD.derive(b"wire", b"can").sign(b"short")]) == []
    assert far.rejected == {"forged": 1}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (FRAME, "unsigned"),
        (MESSAGE, "unsigned"),
        (MESSAGE + bytes(7), "unsigned"),
        (b"", "forged"),
        (FRAME + b"x" * SEAL_BYTES, "forged"),
        (End(1, NEW).say(FRAME)[0], "forged"),
        (End(1, OLD, "uart").say(FRAME)[0], "forged"),
    ],
)
def test_what_is_wrong_is_told_once(message: bytes, reason: str) -> None:
    far = End(2)
    for count in (1, 2):
        assert far.hears([message]) == []
        assert far.rejected == {reason: count}
    assert far.told == [reason]
    assert WORDS[reason]


def test_keys_change_while_messages_pass() -> None:
    near, far = End(1), End(2)
    assert far.hears(near.say(*SAID)) == SAID
    sealed = near.say(FRAME)
    far.seals.rekey(Keyring((b"n" * 32, b"o" * 32)))
    assert far.hears(sealed) == [FRAME]
    near.seals.rekey(Keyring((b"n" * 32, b"o" * 32)))
    assert far.hears(near.say(*SAID)) == SAID
    far.seals.rekey(OLD)
    assert far.hears(near.say(FRAME)) == []


def test_the_page_has_the_bytes() -> None:
    page = (ROOT / "docs" / "wire" / "signed.md").read_text().replace(" ", "").replace("|", "")
    seals = Seals(Keyring((bytes(range(32)),)), "uart", 0x5EED0001, lambda: NOW_S, {})
    message = bytes.fromhex("e108f011a1b2c3d4000000070202000511223344556677" + "8868656c6c6f")
    assert seals.seal(message).hex() in page
