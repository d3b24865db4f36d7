"""Which shed policies there are, which messages fit a slow medium, and what a topic is."""

from typing import Any

import pytest

from bridges.media.shedding import Shed, ShedQueue, checked, fitting, topic
from bus.errors import LinkError
from bus.ledger import Stats
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack


def reading(topic_token: int, value: int) -> bytes:
    return pack(1, (topic_token,), value.to_bytes(4, "big"))


def queue(policy: Any, lost: list[tuple[bytes, str]] | None = None, **shed: Any) -> tuple[ShedQueue, Stats]:
    stats = Stats()
    on_lost = None if lost is None else lambda message, reason: lost.append((message, reason))
    return ShedQueue(stats, Shed(policy, **shed), empty=True, on_lost=on_lost), stats


def keep(waiting: ShedQueue, stats: Stats, *messages: bytes, now: float = 0.0) -> None:
    stats.offered += len(messages)
    waiting.put(now, messages)


def contents(waiting: ShedQueue) -> list[bytes]:
    return [message for _, message in waiting._waiting.values()]  # noqa: SLF001


A, B, C = (reading(token, 0) for token in (1, 2, 3))
STATS = Stats()


def test_without_a_policy_the_newest_go_above_64_kib() -> None:
    assert Shed() == Shed("newest", 65_536, None, None, False)
    assert checked("x", None, 4000) == Shed("newest", 4000, None, None, False)
    assert checked("x", None, 4000, 0.5) == Shed("newest", 4000, 0.5, None, False)


def test_a_policy_that_somebody_asked_for_is_stated_and_its_age_goes_first() -> None:
    asked = Shed("oldest", 5000, rate=2.0)
    assert checked("x", asked, 4000, 0.5) == Shed("oldest", 5000, 0.5, 2.0, True)
    assert checked("x", asked._replace(age_s=1.0), 4000, 0.5) == Shed("oldest", 5000, 1.0, 2.0, True)
    assert (asked.full, asked.old) == ("queue full", "stale")
    stated = checked("x", asked, 4000)
    assert (stated.full, stated.old) == ("shed", "aged out")


@pytest.mark.parametrize(
    ("shed", "words"),
    [
        (Shed("latest"), "x: no shed policy 'latest': newest, oldest, conflate"),  # type: ignore[arg-type]
        (Shed(queue_bytes=3083), "x: queue_bytes must be at least 3084, else the longest frame never fits"),
        (Shed(age_s=0.0), "x: age_ms must be above 0, not 0"),
        (Shed(age_s=-0.5), "x: age_ms must be above 0, not -500"),
        (Shed(rate=0.0), "x: rate must be above 0, not 0"),
    ],
)
def test_a_policy_that_can_never_work_is_refused(shed: Shed, words: str) -> None:
    with pytest.raises(LinkError) as error:
        checked("x", shed, 4000)
    assert str(error.value) == words


def test_the_smallest_policy_that_works() -> None:
    smallest = Shed("conflate", 3084, 0.001, 0.001)
    assert checked("x", smallest, 4000) == smallest._replace(stated=True)


def test_messages_of_4_to_3084_bytes_fit_and_the_others_are_counted() -> None:
    stats = Stats()
    assert fitting([bytes(size) for size in (0, 1, 3, 4, 3084, 3085)], stats) == [bytes(4), bytes(3084)]
    assert stats.dropped == {"empty": 1, "short": 2, "oversize": 1}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (pack(7, ()), b"\7"),
        (pack(7, (1, 2), b"x" * 300), b"\7\0\0\0\1\0\0\0\2"),
        (pack(7, (1,), b"x")[:-1], b""),
        (pack(7, (1,), b"x" * 256)[:-256], b""),
        (pack(7, (1,)) + b"x", b""),
        (bytes(3), b""),
        (wrap(pack(7, ()), Envelope(1, 2)), b"\7"),
        (wrap(pack(7, (1,), b"xy"), Envelope(1, 2)), b"\7\0\0\0\1"),
        (wrap(pack(7, (1,)), Envelope(1, 2))[:15], b""),
        (wrap(b"", Envelope(1, 2)), b""),
        (pack(0xE1, (1,), bytes(12)), b"\xe1\0\0\0\1"),
        (b"\xe1\0\xf0\1" + bytes(7), b""),
    ],
)
def test_the_topic_of_a_message(message: bytes, expected: bytes) -> None:
    assert topic(message) == expected


def test_a_new_policy_conflates_frames_that_wait_and_no_opaque_messages() -> None:
    lost = list[tuple[bytes, str]]()
    waiting, stats = queue("newest", lost)
    keep(waiting, stats, b"one", A, b"two", reading(1, 7), b"one")
    waiting.revise(Shed("conflate"))
    assert contents(waiting) == [b"one", b"two", reading(1, 7), b"one"]
    assert lost == [(A, "conflated")]
    assert (stats.queued, stats.balance()) == (4, 0)


def test_each_message_that_is_dropped_is_told_with_its_reason() -> None:
    lost = list[tuple[bytes, str]]()
    waiting, stats = queue("newest", lost, queue_bytes=24, age_s=1.0)
    keep(waiting, stats, A, B, C)
    keep(waiting, stats, C, now=1.5)
    waiting.remove(lambda message: message == C, "expired")
    keep(waiting, stats, A, B, now=1.5)
    assert waiting.clear("closed") == [A, B]
    assert lost == [
        (C, "queue full"),
        (A, "stale"),
        (B, "stale"),
        (C, "expired"),
        (A, "closed"),
        (B, "closed"),
    ]
    assert stats.dropped == {"queue full": 1, "stale": 2, "expired": 1, "closed": 2}
    assert (len(waiting), stats.queued, stats.queued_bytes, stats.balance()) == (0, 0, 0, 0)


def test_only_what_is_chosen_is_removed() -> None:
    waiting, stats = queue("oldest")
    keep(waiting, stats, A, B, C, B)
    waiting.remove(lambda message: message == B, "expired")
    assert contents(waiting) == [A, C]
    assert stats.dropped == {"expired": 2}


def test_somebody_else_can_settle_what_is_dropped() -> None:
    settled = list[tuple[int, str]]()
    lost = list[tuple[bytes, str]]()
    waiting, stats = queue("oldest", lost, age_s=1.0)
    keep(waiting, stats, A, B)
    assert waiting.take(1.5, settle=lambda *what: settled.append(what)) is None
    keep(waiting, stats, C, now=2.0)
    waiting.clear("closed", lambda *what: settled.append(what))
    assert settled == [(12, "stale"), (12, "stale"), (12, "closed")]
    assert [message for message, _ in lost] == [A, B, C]
    assert (stats.queued, stats.dropped) == (3, {})


def test_what_is_drained_counts_as_sent() -> None:
    waiting, stats = queue("oldest")
    keep(waiting, stats, A, B)
    assert waiting.drain() == [A, B]
    assert (stats.sent, stats.sent_bytes, stats.queued, len(waiting)) == (2, 24, 0, 0)
    assert waiting.drain() == []


def test_what_has_waited_for_exactly_its_age_still_goes() -> None:
    waiting, stats = queue("newest", age_s=0.5)
    keep(waiting, stats, A, B, now=1.0)
    assert waiting.take(1.5) == (1.0, A)
    assert waiting.take(1.25, ahead_s=0.5) is None
    assert stats.dropped == {"stale": 1}


def test_a_timer_that_fires_10_ms_late_does_not_lower_the_rate() -> None:
    waiting, stats = queue("newest", rate=4.0)
    keep(waiting, stats, A, A, A, A)
    assert waiting.ready_s() == waiting._next_s == float("-inf")  # noqa: SLF001
    times = []
    for now in (1.0, 1.2578125, 1.5, 1.8125):  # 0, 8, 0 and 62 ms late
        assert waiting.ready(now)
        waiting.take(now)
        times.append(waiting._next_s)  # noqa: SLF001
    assert times == [1.25, 1.5, 1.75, 2.0625]
    waiting.revise(Shed(rate=4.0))
    keep(waiting, stats, A, A, now=-0.25)
    waiting.take(-0.25)
    waiting.take(0.01)
    assert waiting._next_s == 0.25  # noqa: SLF001


def test_a_message_waits_for_the_very_moment_that_the_rate_allows() -> None:
    waiting, stats = queue("newest", rate=4.0)
    keep(waiting, stats, A, B)
    assert waiting.take(1.0) == (0.0, A)
    assert waiting.take(1.249) is None
    assert waiting.ready_s() == 1.25
    assert waiting.take(1.25) == (0.0, B)
    assert (waiting.ready_s(), waiting.oldest_s) == (float("inf"), float("inf"))
    assert not waiting.ready(9.0)


def test_what_is_put_back_stays_in_front_in_order() -> None:
    waiting, stats = queue("newest")
    keep(waiting, stats, A, B, C)
    first, second = waiting.take(0), waiting.take(0)
    assert first
    assert second
    waiting.put_back(*second)
    waiting.put_back(*first)
    keep(waiting, stats, A, now=3.0)
    assert contents(waiting) == [A, B, C, A]
    assert (waiting.oldest_s, len(waiting), stats.queued) == (0.0, 4, 4)


def test_what_is_put_back_does_not_count_for_the_rate() -> None:
    waiting, stats = queue("newest", rate=4.0)
    keep(waiting, stats, A)
    found = waiting.take(1.0)
    assert found
    waiting.put_back(*found)
    assert (waiting.ready_s(), waiting.take(1.0), waiting._next_s) == (1.0, found, 1.25)  # noqa: SLF001


def test_after_a_change_of_policy_what_comes_goes_behind_what_waits() -> None:
    waiting, stats = queue("newest")
    keep(waiting, stats, A, B, C)
    waiting.revise(Shed("oldest"))
    keep(waiting, stats, C, B, A)
    assert contents(waiting) == [A, B, C, C, B, A]


def test_what_is_put_back_is_conflated_with_what_has_come_since() -> None:
    waiting, stats = queue("conflate")
    keep(waiting, stats, A, b"opaque")
    for expected in (A, b"opaque"):
        found = waiting.take(0)
        assert found
        assert found[1] == expected
        keep(waiting, stats, reading(1, 5), b"opaque")
        waiting.put_back(*found)
        assert stats.balance() == 0
    assert contents(waiting) == [b"opaque", reading(1, 5), b"opaque", b"opaque"]
    assert stats.dropped == {"conflated": 2}


@pytest.mark.parametrize("policy", ["newest", "oldest", "conflate"])
def test_the_bound_of_the_queue_is_exact(policy: str) -> None:
    waiting, stats = queue(policy, queue_bytes=24)
    keep(waiting, stats, A, B)
    assert (contents(waiting), stats.dropped, stats.queued_bytes) == ([A, B], {}, 24)
    keep(waiting, stats, bytes(24))
    assert contents(waiting) == ([A, B] if policy == "newest" else [bytes(24)])
    keep(waiting, stats, bytes(25))
    assert stats.balance() == 0
    assert stats.dropped == {"queue full": 2 if policy == "newest" else 3}


@pytest.mark.parametrize(("policy", "kept"), [("newest", range(25)), ("oldest", range(15, 40))])
def test_a_tiny_message_counts_for_4_bytes(policy: str, kept: range) -> None:
    waiting, stats = queue(policy, queue_bytes=100)
    keep(waiting, stats, *[bytes((number,)) for number in range(40)])
    assert contents(waiting) == [bytes((number,)) for number in kept]
    assert (stats.queued, stats.dropped) == (25, {"queue full": 15})
