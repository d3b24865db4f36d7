"""The queue of a slow medium, which sheds by policy; the ledger balances at every step."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.shedding import Shed, ShedQueue, topic
from bus.ledger import Stats
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack


def reading(topic_token: int, value: int, size: int = 0) -> bytes:
    return pack(1, (topic_token,), value.to_bytes(4, "big") + bytes(size))


def queue(**shed: object) -> tuple[ShedQueue, Stats]:
    stats = Stats()
    return ShedQueue(stats, Shed(**shed)), stats  # type: ignore[arg-type]


def put(waiting: ShedQueue, stats: Stats, now: float, *messages: bytes) -> None:
    stats.offered += len(messages)
    waiting.put(now, messages)
    assert stats.balance() == 0


def taken(waiting: ShedQueue, now: float) -> list[bytes]:
    out = []
    while (found := waiting.take(now)) is not None:
        out.append(found[1])
        waiting.settle(len(found[1]))
    return out


A, B, C = (reading(token, 0) for token in (1, 2, 3))


def test_newest_goes_when_it_is_full() -> None:
    waiting, stats = queue(policy="newest", queue_bytes=2 * len(A))
    put(waiting, stats, 0, A, B, C)
    assert taken(waiting, 0) == [A, B]
    assert stats.dropped == {"queue full": 1}
    assert stats.balance() == 0


def test_oldest_goes_when_it_is_full() -> None:
    waiting, stats = queue(policy="oldest", queue_bytes=2 * len(A))
    put(waiting, stats, 0, A, B, C)
    assert taken(waiting, 0) == [B, C]
    assert stats.dropped == {"queue full": 1}


def test_a_message_larger_than_the_queue_pushes_nothing_out() -> None:
    for policy in ("newest", "oldest", "conflate"):
        waiting, stats = queue(policy=policy, queue_bytes=2 * len(A))
        put(waiting, stats, 0, A, reading(9, 0, 100))
        assert taken(waiting, 0) == [A]


def test_conflate_keeps_the_latest_of_each_topic_in_the_place_of_the_first() -> None:
    waiting, stats = queue(policy="conflate")
    put(waiting, stats, 0, reading(1, 1), reading(2, 1), reading(1, 2), reading(2, 2), reading(1, 3))
    assert taken(waiting, 0) == [reading(1, 3), reading(2, 2)]
    assert stats.dropped == {"conflated": 3}
    assert stats.balance() == 0


def test_conflate_makes_room_for_what_is_newer() -> None:
    waiting, stats = queue(policy="conflate", queue_bytes=2 * len(A))
    put(waiting, stats, 0, A, B, reading(3, 7))
    assert taken(waiting, 0) == [B, reading(3, 7)]


def test_a_busy_topic_starves_no_other() -> None:
    waiting, stats = queue(policy="conflate")
    put(waiting, stats, 0, A, B)
    for value in range(50):
        put(waiting, stats, 0, reading(1, value))
    found = waiting.take(0)
    assert found
    waiting.settle(len(found[1]))
    put(waiting, stats, 0, reading(1, 99))
    assert taken(waiting, 0) == [B, reading(1, 99)]


def test_the_topic_is_type_and_tokens_with_an_envelope_or_without() -> None:
    assert topic(A) == topic(wrap(reading(1, 5), Envelope(1, 2))) != topic(B)
    assert topic(pack(1, (1,))) != topic(pack(2, (1,)))
    assert topic(pack(0xE1, (1,))) == b"\xe1\0\0\0\1"


@pytest.mark.parametrize("policy", ["newest", "oldest", "conflate"])
def test_what_waited_too_long_does_not_come_out(policy: str) -> None:
    waiting, stats = queue(policy=policy, age_s=0.5)
    put(waiting, stats, 0.0, A)
    put(waiting, stats, 0.4, B)
    assert taken(waiting, 0.6) == [B]
    assert stats.dropped == {"stale": 1}
    assert stats.balance() == 0


def test_a_conflated_frame_is_as_old_as_its_newest_value() -> None:
    waiting, stats = queue(policy="conflate", age_s=0.5)
    put(waiting, stats, 0.0, A)
    put(waiting, stats, 0.4, reading(1, 2))
    assert taken(waiting, 0.8) == [reading(1, 2)]


def test_a_rate_spaces_what_leaves() -> None:
    waiting, stats = queue(rate=10.0)
    put(waiting, stats, 0.0, *[A] * 5)
    assert len(taken(waiting, 1.0)) == 1
    assert 1.05 < waiting.ready_s() <= 1.1
    assert taken(waiting, 1.05) == []
    assert len(taken(waiting, 1.11)) == 1
    assert [len(taken(waiting, 5.0)), len(taken(waiting, 5.0))] == [1, 0]  # a pause does not allow a burst


def test_what_was_taken_counts_as_queued_until_it_is_settled() -> None:
    waiting, stats = queue()
    put(waiting, stats, 0, A, B)
    waiting.take(0)
    assert (stats.queued, len(waiting)) == (2, 1)
    waiting.settle(len(A), "closed")
    waiting.clear("closed")
    assert stats.dropped == {"closed": 2}
    assert (stats.queued, stats.queued_bytes, stats.balance()) == (0, 0, 0)


def test_what_is_put_back_is_first_in_line_and_as_old_as_it_was() -> None:
    waiting, stats = queue(age_s=0.5, rate=1.0)
    put(waiting, stats, 0, A, B)
    put(waiting, stats, 0.4, C)
    first = waiting.take(0)
    assert first is not None
    assert first == (0, A)
    assert not waiting.ready(0.1)
    waiting.put_back(*first)
    assert waiting.ready(0.1)  # it did not count for the rate
    assert waiting.take(0.1) == first
    waiting.put_back(*first)
    assert waiting.take(0.6) == (0.4, C)
    assert stats.dropped == {"stale": 2}


def test_what_lies_ahead_counts_to_the_age() -> None:
    waiting, stats = queue(age_s=0.5)
    put(waiting, stats, 0, A)
    put(waiting, stats, 0.3, B)
    assert waiting.take(0.4, ahead_s=0.2) == (0.3, B)
    assert stats.dropped == {"stale": 1}


def test_what_is_taken_counts_to_the_bound_but_never_costs_what_comes() -> None:
    waiting, stats = queue(policy="conflate", queue_bytes=len(A))
    put(waiting, stats, 0, A)
    waiting.take(0)
    put(waiting, stats, 0, reading(1, 2))
    put(waiting, stats, 0, B)
    assert taken(waiting, 0) == [B]
    assert stats.dropped == {"queue full": 1}


def test_an_empty_message_is_no_frame() -> None:
    waiting, stats = queue()
    put(waiting, stats, 0, b"")
    assert stats.dropped == {"empty": 1}


STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.booleans()), min_size=1, max_size=60)


@given(st.sampled_from(["newest", "oldest", "conflate"]), st.none() | st.just(1.0), STEPS)
def test_nothing_is_lost_without_a_reason_nor_more_kept_than_may_be(
    policy: str, age_s: float | None, steps: list[tuple[int, int, bool]]
) -> None:
    waiting, stats = queue(policy=policy, queue_bytes=100, age_s=age_s)
    last: dict[int, bytes] = {}
    order: deque[float] = deque()
    for number, (token, size, take) in enumerate(steps):
        now = number * 0.3
        put(waiting, stats, now, message := reading(token, number, size))
        last[token] = message
        assert 0 <= stats.queued_bytes <= 100
        if take and number % 3 == 0 and (found := waiting.take(now)):
            waiting.put_back(*found)
            assert stats.balance() == 0
        if take and (found := waiting.take(now)):
            waiting.settle(len(found[1]))
            order.append(found[0])
            assert age_s is None or found[0] >= now - age_s
            if policy == "conflate":
                assert found[1] == last[int.from_bytes(found[1][4:8], "big")]
        assert stats.balance() == 0
    if policy != "conflate":
        assert list(order) == sorted(order)


def test_opaque_messages_are_never_conflated() -> None:
    messages = [
        b"",
        b"a",
        b"a",
        b"hello",
        wrap(b"hello", Envelope(1, 2)),
        wrap(b"", Envelope(1, 3)),
        bytes(5000),
    ]
    assert [topic(message) for message in messages] == [b""] * len(messages)
    stats = Stats()
    waiting = ShedQueue(stats, Shed("conflate"), empty=True)
    put(waiting, stats, 0, *messages, A, *messages, reading(1, 7))
    assert taken(waiting, 0) == [*messages, reading(1, 7), *messages]
    assert stats.dropped == {"conflated": 1}


@pytest.mark.parametrize("policy", ["newest", "oldest", "conflate"])
def test_messages_without_bytes_are_bounded_too(policy: str) -> None:
    stats = Stats()
    waiting = ShedQueue(stats, Shed(policy, queue_bytes=400), empty=True)  # type: ignore[arg-type]
    put(waiting, stats, 0, *[b""] * 1000)
    assert len(waiting) == stats.queued <= 101
    assert stats.balance() == 0


def test_another_policy_takes_over_what_waits() -> None:
    waiting, stats = queue(policy="newest", rate=1.0)
    put(waiting, stats, 0, A, B, reading(1, 7), C)
    assert waiting.take(0) == (0, A)
    waiting.settle(len(A))
    waiting.revise(Shed("oldest"))
    assert taken(waiting, 0) == [B, reading(1, 7), C]  # in order, and no rate holds them back
    put(waiting, stats, 1, A, B, reading(1, 7))
    waiting.revise(Shed("conflate"))
    assert taken(waiting, 1) == [B, reading(1, 7)]
    assert stats.dropped == {"conflated": 1}
    put(waiting, stats, 2, A, B)
    waiting.revise(Shed("newest", age_s=0.5))
    assert taken(waiting, 3) == []
    assert stats.dropped == {"conflated": 1, "stale": 2}
    assert stats.balance() == 0


changes = st.builds(
    Shed,
    st.sampled_from(["newest", "oldest", "conflate"]),
    st.sampled_from([20, 4000]),
    st.sampled_from([None, 1]),
    st.none(),
)


@given(st.lists(st.one_of(st.integers(1, 4), changes, st.none())))
def test_the_ledger_balances_over_any_change_of_policy(steps: list[int | Shed | None]) -> None:
    waiting, stats = queue()
    for now, step in enumerate(steps):
        if isinstance(step, Shed):
            waiting.revise(step)
        elif step is None:
            taken(waiting, now)
        else:
            put(waiting, stats, now, reading(step, now))
        assert stats.balance() == 0
        assert stats.queued == len(waiting)
    taken(waiting, len(steps))
    assert stats.queued == stats.queued_bytes == 0


def test_messages_pass_by_an_empty_queue_that_would_take_them_and_count_as_taken() -> None:
    waiting, stats = queue(queue_bytes=4096)
    assert waiting.lets_by([8, 9])
    stats.offered += 2
    waiting.pass_by([8, 9])
    assert (stats.queued, stats.queued_bytes, stats.balance(), len(waiting)) == (2, 17, 0, 0)
    waiting.settle_sent([8, 9])
    assert (stats.sent, stats.sent_bytes, stats.queued, stats.balance()) == (2, 17, 0, 0)
    assert [waiting.lets_by([size]) for size in (4096, 4097, 0)] == [True, False, False]
    put(waiting, stats, 0.0, A)
    assert not waiting.lets_by([8])
    for other in ({"policy": "conflate"}, {"rate": 10.0}):
        assert not queue(**other)[0].lets_by([8])
