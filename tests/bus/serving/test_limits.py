"""The bounds of a service: its limits, how much one peer may ask for, and what clients may register."""

import random
from collections import Counter
from dataclasses import asdict, replace

import pytest

from bus.serving.limits import READ_BYTES, Limits, Quota


def test_what_holds_by_default() -> None:
    assert asdict(Limits()) == {
        "heartbeat_s": 1.0,
        "idle_s": 5.0,
        "stalled_s": 30.0,
        "queue_bytes": 1_048_576,
        "object_bytes": 65_536,
        "connections": 1024,
        "read_bytes": 262_144,
    }


@pytest.mark.parametrize("name", asdict(Limits()))
def test_every_limit_is_above_zero(name: str) -> None:
    replace(Limits(), **{name: 1})
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="above 0"):
            replace(Limits(), **{name: wrong})


def test_no_more_is_read_at_once_than_can_be_cut_at_once() -> None:
    replace(Limits(), read_bytes=READ_BYTES)
    with pytest.raises(ValueError, match="at most 262144"):
        replace(Limits(), read_bytes=READ_BYTES + 1)


def test_each_bound_refuses_by_its_own_reason() -> None:
    quota = Quota[str](total=5, per_key=2, per_host=3, weight=100)
    assert [quota.take("a", "h") for _ in range(3)] == ["", "", "registrations of one connection"]
    assert [quota.take("b", "h") for _ in range(2)] == ["", "registrations of one host"]
    assert quota.take("b", "other", 101) == "registrations full"
    assert [quota.take("c", "other") for _ in range(2)] == ["", ""]
    assert quota.take("d", "other") == "registrations full"
    assert len(quota) == 5


def test_what_is_counted_has_a_name() -> None:
    quota = Quota[str](total=2, per_key=1, per_host=1, weight=1, what="producers", key="client")
    quota.take("a", "h")
    assert quota.take("a", "i") == "producers of one client"
    assert quota.take("b", "h") == "producers of one host"
    assert quota.take("b", "i", 2) == "producers full"


def test_one_host_leaves_room_for_others() -> None:
    quota = Quota[int](total=100, per_key=10, per_host=50, weight=1000)
    refused = Counter(quota.take(number, "flood") for number in range(1000))
    assert refused == {"": 50, "registrations of one host": 950}
    assert quota.take(1, "other") == ""


def test_the_weight_of_one_host_leaves_room_for_others_and_follows_what_moves() -> None:
    quota = Quota[str](total=99, per_key=99, per_host=99, weight=100, host_weight=50)
    assert [quota.take("a", "h", 20) for _ in range(3)] == ["", "", "registrations of one host"]
    assert quota.grow(11, "h") == "registrations of one host"
    assert quota.grow(10, "h") == quota.take("b", "i", 50) == ""
    assert quota.grow(-50, "i") == quota.grow(-10, "h") == ""
    quota.move("h", "i", 20)
    assert quota.take("a", "h", 30) == ""
    quota.give_back("a", "h", 30)
    assert quota.hand_over("i", 31) == "registrations of one host"
    assert quota.hand_over("i", 30) == ""


def test_who_has_no_host_is_bounded_by_key_and_in_all() -> None:
    quota = Quota[str](total=3, per_key=2, per_host=1, weight=1)
    assert [quota.take(key, "") for key in "aaabb"] == [
        "",
        "",
        "registrations of one connection",
        "",
        "registrations full",
    ]


def test_one_that_moves_counts_for_its_new_host() -> None:
    quota = Quota[str](total=9, per_key=9, per_host=1, weight=9)
    quota.take("a", "h")
    quota.move("h", "i")
    assert quota.take("a", "i") == "registrations of one host"
    assert quota.take("a", "h") == ""


def test_weight_may_fill_the_bound_and_shrink_again() -> None:
    quota = Quota[str](total=9, per_key=9, per_host=9, weight=100)
    assert quota.take("a", "h", 100) == ""
    assert quota.grow(1) == quota.take("a", "h", 1) == "registrations full"
    assert quota.grow(0) == quota.grow(-1) == quota.grow(1) == ""
    assert quota.grow(1) == "registrations full"
    quota.give_back("a", "h", 99)
    assert [quota.take("a", "h"), quota.take("a", "h", 99), quota.take("a", "h", 1)] == [
        "", "", "registrations full",
    ]  # fmt: skip


def test_what_weighs_nothing_gives_nothing_back() -> None:
    quota = Quota[str](total=9, per_key=9, per_host=9, weight=10)
    quota.take("a", "h", 10)
    quota.take("a", "h")
    quota.give_back("a", "h")
    assert quota.grow(1) == "registrations full"


def test_what_was_taken_for_no_host_is_handed_over_within_the_bound_of_one() -> None:
    quota = Quota[str](total=9, per_key=9, per_host=2, weight=9)
    assert [quota.take("a", ""), quota.take("a", ""), quota.take("a", "")] == ["", "", ""]
    assert [quota.hand_over("h") for _ in range(3)] == ["", "", "registrations of one host"]
    assert quota.take("a", "h") == "registrations of one host"
    quota.give_back("a", "h")
    assert quota.hand_over("h") == ""


def test_what_is_given_back_can_be_taken_again_whatever_the_order() -> None:
    source, quota = random.Random(4), Quota[int](total=40, per_key=5, per_host=15, weight=200)
    for _ in range(20):
        held = list[tuple[int, str, int]]()
        for _ in range(200):
            one = source.randrange(12), source.choice(("", "h", "i", "j")), source.randrange(12)
            if not quota.take(*one):
                held.append(one)
            if held and source.random() < 0.3:
                quota.give_back(*held.pop(source.randrange(len(held))))
            assert len(quota) == len(held) <= 40
            assert sum(weight for _, _, weight in held) <= 200
            assert max(Counter(key for key, _, _ in held).values(), default=0) <= 5
            assert max(Counter(host for _, host, _ in held if host).values(), default=0) <= 15
        for one in held:
            quota.give_back(*one)
    assert [quota.take(key, "h") for key in range(16)][-2:] == ["", "registrations of one host"]
