"""Chores: hosts take turns, a turn is short, and all together take no more than their share of the time."""

import asyncio
from collections import Counter

import pytest

from bus.transports.chores import BURST_S, CHORES, TURN_S, FairQueue, queues_of


class Room:
    """A queue on a loop whose time a test sets: each job takes a millisecond of it."""

    def __init__(self, share: float = CHORES) -> None:
        self.now_s = self.spent_s = 0.0
        self.later: list[tuple[float, object]] = []
        self.queue = FairQueue(self, share, lambda: self.spent_s)  # type: ignore[arg-type]
        self.done: list[str] = []
        self.turns: list[int] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, call: object) -> None:
        self.later.append((self.now_s, call))

    def call_later(self, after_s: float, call: object) -> None:
        self.later.append((self.now_s + after_s, call))

    def put(self, host: str, least_s: float = 0.0) -> bool:
        return self.queue.put(host, lambda: self._work(host), least_s)

    def _work(self, host: str) -> None:
        self.done.append(host)
        self.spent_s += 0.001
        self.now_s += 0.001

    def run(self) -> None:
        """Run the loop until nothing is left to do."""
        while self.later:
            self.later.sort(key=lambda one: one[0])
            at_s, call = self.later.pop(0)
            self.now_s = max(self.now_s, at_s)
            before = len(self.done)
            call()  # type: ignore[operator]
            self.turns.append(len(self.done) - before)


def test_a_few_jobs_are_done_at_once_and_the_rest_in_turns_of_2_ms() -> None:
    room = Room()
    assert [room.put("a") for _ in range(10)] == [True, True, *[False] * 8]
    assert len(room.queue) == 8
    room.run()
    assert len(room.done) == 10
    assert max(room.turns) <= TURN_S / 0.001 + 1


def test_a_network_of_ipv6_has_the_turns_of_one_host_and_its_addresses_share_them() -> None:
    room = Room()
    for number in range(1000):
        room.put(f"2001:db8::{number % 100:x}")
    for _ in range(10):
        room.put("192.0.2.1")
        room.put("2001:db8::ffff")
    room.run()
    assert len(room.done) == 1020
    assert "192.0.2.1" not in room.done[30:]
    assert "2001:db8::ffff" in room.done[:210]


def test_hosts_take_turns_however_many_jobs_one_has() -> None:
    room = Room()
    for _ in range(1000):
        room.put("stranger")
    before = len(room.done)
    for _ in range(3):
        room.put("honest")
    room.run()
    assert [at for at, host in enumerate(room.done[before:]) if host == "honest"] == [1, 3, 5]


def test_all_hosts_together_have_a_share_of_the_time() -> None:
    room = Room()
    for number in range(1000):
        room.put(f"host {number % 7}")
    room.run()
    assert len(room.done) == 1000
    assert room.spent_s <= BURST_S + CHORES * room.now_s + TURN_S
    assert room.now_s == pytest.approx((1 - BURST_S) / CHORES, rel=0.2)
    assert max(Counter(room.done).values()) <= 1000 // 7 + 1


def test_work_that_cannot_be_measured_counts_for_what_it_is_said_to_take() -> None:
    room = Room()
    for _ in range(100):
        room.put("a", least_s=0.01)
    room.run()
    assert room.now_s >= 0.9 * (1.0 - BURST_S) / CHORES


def test_busy_peers_may_have_all_of_the_time_in_short_turns() -> None:
    room = Room(share=1.0)
    for _ in range(1000):
        room.put("a")
    room.run()
    assert room.now_s == pytest.approx(1.0)
    assert max(room.turns) <= 3


def test_a_job_that_fails_delays_nobody() -> None:
    room = Room()

    def fail() -> None:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        room.queue.put("a", fail)
    assert room.put("b")


async def test_a_loop_has_queues_of_its_own_and_one_may_wait_for_a_turn() -> None:
    queues = queues_of(asyncio.get_running_loop())
    assert queues_of(asyncio.get_running_loop()) is queues
    for _ in range(100):
        await queues.chores.turn("a", 0.001)
    assert len(queues.chores) == 0
