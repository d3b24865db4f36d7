"""Frames that say nothing new, or come too often."""

import random
import tracemalloc

import pytest

from bridges.front.settings import Limit
from bridges.front.thinning import Limits, Memory, passing
from bus.wire.batch import from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import SUB, pack
from bus.wire.pattern import Pattern


def message(word: str, data: bytes = b"", kind: int = 1) -> bytes:
    return pack(kind, Pattern(*word.split("/")), data)


class Door:
    """Something that judges messages by one of the two, and counts what it keeps out."""

    def __init__(self, judged: Memory | Limits) -> None:
        self.judge = judged
        self.refused = 0

    def let(self, messages: list[bytes], now_s: float) -> list[bytes]:
        out = passing(from_payloads(messages), self.judge, now_s, "why", self.count)
        return [] if out is None else payloads(out)

    def count(self, why: str, count: int) -> None:
        assert why == "why"
        self.refused += count


def test_what_does_not_change_passes_once_in_each_refresh() -> None:
    door = Door(Memory(10.0))
    passed = [now for now in range(40) if door.let([message("t", b"20")], float(now))]
    assert passed == [0, 10, 20, 30]
    assert door.refused == 36


def test_a_pattern_is_all_tokens_and_its_kind() -> None:
    door = Door(Memory(10.0))
    one, two = message("t/1", b"20"), message("t/2", b"20")
    assert door.let([one, two, one, message("t/1", b"20", 5), message("t", b"20")], 0) == [
        one,
        two,
        message("t/1", b"20", 5),
        message("t", b"20"),
    ]
    assert door.let([message("t/1", b"21"), one], 1) == [message("t/1", b"21"), one]


def test_frames_that_publish_nothing_and_messages_that_are_none_pass() -> None:
    door = Door(Memory(10.0))
    messages = [message("t", b"", SUB), message("t", b"", SUB), b"opaque", b"opaque", b"", b""]
    assert door.let(messages, 0) == messages


def test_an_envelope_does_not_make_a_frame_new() -> None:
    door = Door(Memory(10.0))
    named = [wrap(message("t", b"20"), Envelope(1, n)) for n in range(3)]
    assert door.let(named, 0) == named[:1]


def test_the_memory_is_bounded_and_what_it_forgets_passes() -> None:
    memory = Memory(10.0, patterns=3, memory_bytes=100)
    door = Door(memory)
    some = [message(f"t/{n}", b"1") for n in range(7)]
    assert door.let([*some, some[6], some[3], some[0]], 0) == [*some, some[0]]  # the last three at least
    assert len(memory) <= 6
    door.let([message(f"big/{n}", bytes(100)) for n in range(10)], 0)
    assert len(memory) <= 2


def test_a_pattern_that_is_heard_again_and_again_is_not_forgotten() -> None:
    door = Door(Memory(1e9, patterns=4))
    known = message("known", b"1")
    door.let([known], 0)
    for n in range(100):
        assert door.let([message(f"t/{n}"), known], 0) == [message(f"t/{n}")]


@pytest.mark.parametrize("enveloped", [False, True])
@pytest.mark.parametrize("size", [0, 1, 8])
def test_a_run_of_equal_messages_is_judged_as_each_alone(size: int, enveloped: bool) -> None:
    """What passes of a batch passes if each of its messages comes alone, whatever their layout."""
    chance = random.Random(size)
    made = [message(f"t/{chance.randrange(4)}", chance.choice(b"ab").to_bytes() * size) for _ in range(200)]
    made[60] = message("odd")
    made[150:152] = b"opaque", message("t/1", b"a" * size, 5)
    if enveloped:
        made = [wrap(one, Envelope(1, n)) for n, one in enumerate(made)]
    for doors in (
        [Door(Memory(10.0)) for _ in range(2)],
        [Door(Limits([Limit(("t", "1"), 7), Limit(("t", "2"), 1e9), Limit(("odd",), 1)])) for _ in range(2)],
        [Door(Limits([Limit(("t",), 9)])) for _ in range(2)],
    ):
        whole = doors[0].let(made, 0.0)
        assert whole == [one for each in made for one in doors[1].let([each], 0.0)]
        assert doors[0].refused == doors[1].refused == len(made) - len(whole) > 0


@pytest.mark.parametrize(
    ("rate", "seconds", "most"), [(10, 10, 110), (0.5, 10, 6), (2.5, 10, 30), (200, 2, 520)]
)
def test_a_flood_is_cut_to_the_limit_and_a_burst_passes(rate: float, seconds: int, most: int) -> None:
    door = Door(Limits([Limit(("t",), rate)]))
    passed = sum(len(door.let([message("t/1")] * 10, n / 100)) for n in range(100 * seconds))
    assert rate * seconds <= passed <= most
    assert door.refused == 1000 * seconds - passed


def test_a_steady_sender_at_the_limit_loses_nothing() -> None:
    door = Door(Limits([Limit((), 10)]))
    assert all(door.let([message("t")], n / 10 - (n % 2) * 0.004) for n in range(200))


def test_the_count_of_a_high_limit_takes_little_memory() -> None:
    door, one = Door(Limits([Limit(("t",), 1e6)])), [message("t")]
    door.let(one, 0)
    tracemalloc.start()
    for n in range(3000):
        door.let(one, n / 3000)
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes < 1 << 16


def test_the_first_limit_that_fits_counts_alone_and_others_pass() -> None:
    door = Door(Limits([Limit(("t", "free"), 1e9), Limit(("t",), 2)]))
    free, bound, other = message("t/free"), message("t/x"), message("u")
    assert door.let([free] * 5 + [bound] * 5 + [other] * 5, 0) == [free] * 5 + [bound] * 2 + [other] * 5
    assert door.let([message("t/y")], 0.5) == []  # one count for all that it fits
