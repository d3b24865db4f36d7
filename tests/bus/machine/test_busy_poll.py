"""How long a loop looks for events before it sleeps."""

import asyncio
import math
import os
import random
import socket
from contextlib import closing

import pytest

from bus.machine.busy_poll import DEFAULT_US, SPELL_S, BusyPoll, default_us
from bus.machine.wake_hook import WakefulLoop

LIMIT_S = 50e-6
SHORT_S, LONG_S, WAKE_S = 20e-6, 5e-3, 10e-6


class Machine:
    """A simulated machine: an event comes some time after the last was handled. It counts what looks cost.

    The clock and each look take a little time, and a thread that sleeps is awake some time after its event.
    """

    def __init__(self, limit_us: int = DEFAULT_US) -> None:
        self.busy = BusyPoll(limit_us, self.clock)
        self.now_s, self.looks, self.vain_s, self.sleeps = 1.0, 0, 0.0, 0
        self.slept_s, self.awake_s = 1.0, 0.0
        self._began_s = self._due_s = self._gap_s = 0.0
        self._is_heard, self._stop_s = True, 0.0

    def clock(self) -> float:
        self.now_s += 0.2e-6
        self.awake_s = max(self.awake_s, self.now_s - self.slept_s)
        return self.now_s

    def wait(self, gap_s: float, is_heard: bool = True, timeout_s: float | None = None) -> None:
        """Wait for an event that comes `gap_s` later, to a sleeper only if not `is_heard` while it looks."""
        self._began_s, self._due_s = self.now_s, self.now_s + gap_s
        self._gap_s, self._is_heard = gap_s, is_heard
        self._has_looked = False
        self.busy.wait(self._poll, timeout_s)
        self.looks += self._has_looked

    def stop_while_looking(self, seconds: float) -> None:
        """Stop the process for some time in its next look."""
        self._stop_s = seconds

    def _poll(self, timeout_s: float | None) -> list[str]:
        self.now_s += 0.5e-6
        if timeout_s == 0:
            self._has_looked = True
            self.now_s, self._stop_s = self.now_s + self._stop_s, 0.0
            return ["event"] if self._is_heard and self._due_s <= self.now_s else []
        return self._sleep(math.inf if timeout_s is None else self.now_s + timeout_s)

    def _sleep(self, until_s: float) -> list[str]:
        if self._has_looked:
            self.vain_s += self.now_s - self._began_s
        if not self._is_heard:
            self._due_s = self.now_s + self._gap_s
        due_s = min(self._due_s, until_s)
        if due_s > self.now_s:
            self.sleeps += 1
            self.now_s = self.slept_s = due_s + WAKE_S
        return ["event"] if self._due_s <= until_s else []


def talking() -> Machine:
    """Return a machine amid a dialogue: it looks."""
    one = Machine()
    for _ in range(100):
        one.wait(SHORT_S)
    one.looks = 0
    return one


def test_a_dialogue_is_heard_without_sleep() -> None:
    one = Machine()
    for _ in range(1000):
        one.wait(SHORT_S)
    assert one.sleeps < 12
    assert one.vain_s == 0


@pytest.mark.parametrize("limit_us", [10, 20, DEFAULT_US])
def test_the_time_to_wake_is_none_for_which_a_look_would_have_to_last(
    limit_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted as part of a pause: a limit of 20 us never looked, as a thread was never awake so soon."""
    monkeypatch.setattr("tests.bus.machine.test_busy_poll.WAKE_S", 40e-6)
    one = Machine(limit_us)
    for _ in range(1000):
        one.wait(0.8e-6 * limit_us)
    assert one.sleeps < 12


def test_messages_far_apart_are_slept_for() -> None:
    one = Machine()
    for _ in range(1000):
        one.wait(LONG_S)
    assert one.looks == 0


def test_short_pauses_now_and_then_are_no_dialogue() -> None:
    one = Machine()
    for number in range(1000):
        one.wait(LONG_S if number % 3 else SHORT_S)
    assert one.looks == 0


def test_a_dialogue_that_ends_costs_a_look_or_two() -> None:
    one = talking()
    for _ in range(1000):
        one.wait(LONG_S)
    assert 1 <= one.looks <= 2
    assert one.vain_s <= 2 * LIMIT_S + 1e-5


@pytest.mark.parametrize("timer_s", [SHORT_S, 300e-6, LONG_S])
def test_timers_without_events_cost_a_look_or_two(timer_s: float) -> None:
    """Such as those for which readers look away, while messages gather."""
    one = talking()
    for number in range(10_000):
        one.wait(LONG_S if number % 20 == 19 else 1.0, timeout_s=None if number % 20 == 19 else timer_s)
    assert 1 <= one.looks <= 2


def test_bursts_that_need_no_look_cost_a_look_or_two() -> None:
    """What is there when the work is done would be there after a sleep of no time."""
    one = talking()
    for number in range(10_000):
        one.wait(LONG_S if number % 8 == 7 else 0.0)
    assert one.vain_s <= 2 * LIMIT_S + 1e-5


def test_events_that_are_there_at_once_are_no_reason_to_look() -> None:
    one = Machine()
    for _ in range(1000):
        one.wait(0.0)
    assert one.looks == one.sleeps == 0


def test_a_stream_one_way_is_slept_for() -> None:
    """Messages that answer nothing are no reason to look, nor to look less for the dialogue beside them."""
    one = Machine()
    for _ in range(1000):
        one.busy.expect_no_answer()
        one.wait(SHORT_S)
    assert one.looks == 0
    for number in range(1000):
        if number % 2:
            one.busy.expect_no_answer()
        one.wait(SHORT_S)
    assert 480 <= one.looks <= 500


def test_a_peer_on_the_same_core_is_let_run() -> None:
    """It answers soon while the loop sleeps, and not at all while the loop looks."""
    one = Machine()
    for _ in range(100_000):
        one.wait(SHORT_S, is_heard=False)
    assert 10 < one.looks < 200
    assert one.vain_s < 0.005 * (one.now_s - 1)


def test_a_dialogue_that_paid_is_looked_for_soon_again() -> None:
    """Whatever was in vain before it."""
    one = Machine()
    for _ in range(100_000):
        one.wait(SHORT_S, is_heard=False)
    for _ in range(2000):
        one.wait(SHORT_S)
    for _ in range(10):
        one.wait(LONG_S)
    before = one.sleeps
    for _ in range(1000):
        one.wait(SHORT_S)
    assert one.sleeps - before < 24


@pytest.mark.parametrize("seed", range(20))
def test_looks_in_vain_are_a_small_share_of_any_time(seed: int) -> None:
    """Whatever the pattern: what is spent in vain is less than what was won, or nearly nothing."""
    chance, one = random.Random(seed), Machine()
    for _ in range(2000):
        share = chance.choice((0.0, 0.3, 0.7, 0.79, 0.9, 1.0))
        for _ in range(chance.randrange(1, 30)):
            timer_s = chance.choice((None, None, None, 100e-6, LONG_S))
            one.wait(SHORT_S if chance.random() < share else LONG_S, chance.random() < 0.9, timer_s)
    assert one.vain_s < 0.02 * (one.now_s - 1)


@pytest.mark.parametrize("gap_s", [SHORT_S, 0.0])
def test_the_loop_sleeps_now_and_then_in_a_dialogue_without_end(gap_s: float) -> None:
    """Else the kernel takes a thread of real-time priority for a greedy one. Some come at once (`gap_s`)."""
    one = Machine()
    for number in range(100_000):
        one.wait(SHORT_S if number % 2 else gap_s)
    assert one.awake_s < SPELL_S + 100e-6
    assert one.sleeps < 10 + 2 * (one.now_s - 1) / SPELL_S


def test_a_timer_is_not_late_while_looking() -> None:
    one = talking()
    before_s = one.now_s
    one.wait(1.0, timeout_s=SHORT_S)
    assert one.now_s - before_s < SHORT_S + WAKE_S


def test_a_timer_is_not_late_after_a_stop_while_looking() -> None:
    one = talking()
    one.stop_while_looking(10.0)
    before_s = one.now_s
    one.wait(100.0, timeout_s=5.0)
    assert one.now_s - before_s < 10 + 1e-3


def test_a_limit_of_zero_never_looks() -> None:
    one, other = Machine(0), talking()
    other.busy.revise(0)
    for _ in range(1000):
        one.wait(SHORT_S)
        other.wait(SHORT_S)
    assert one.looks == other.looks == 0


@pytest.mark.parametrize(("allowed", "limit_us"), [(math.inf, DEFAULT_US), (2.0, DEFAULT_US), (1.5, 0)])
def test_a_part_of_a_machine_below_two_processors_never_looks(
    allowed: float, limit_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.machine.busy_poll.processors_allowed", lambda: allowed)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert default_us() == limit_us
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert default_us() == 0


def test_a_loop_whose_clock_stands_looks_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a simulation moves in sleeps alone. By that clock, a look in vain would never end."""
    one, other = socket.socketpair()
    with closing(Standing(busy_poll_us=1000)) as loop, one, other:
        reads = iter(range(30))
        loop.add_reader(one, lambda: next(reads, None) is None and one.recv(1))
        other.send(b"x")
        monkeypatch.setattr("select.select", loop.sleep)
        loop.run_until_complete(asyncio.sleep(900e-6))
        loop.remove_reader(one)
    assert loop.now_s > 900e-6


class Standing(WakefulLoop):
    """A loop whose clock stands but in its sleeps, which are short."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def sleep(self, *_: object) -> tuple[list[object], ...]:
        self.now_s += SHORT_S
        return [self], [], []


def test_a_loop_goes_back_to_the_limit_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(BusyPoll, "revise", lambda _, limit_us: told.append(limit_us))
    with closing(WakefulLoop(busy_poll_us=20)) as loop:
        loop.poll_busily(0)
        loop.poll_busily(None)
    assert told == [20, 0, 20]


def test_a_loop_that_looks_keeps_its_timers_and_its_threads() -> None:
    """Events, timers and calls of threads come while it looks as while it sleeps."""
    one, other = socket.socketpair()
    heard: list[object] = []
    with closing(WakefulLoop(busy_poll_us=1000)) as loop, one, other:
        one.setblocking(False)

        async def answer() -> None:
            for number in range(200):
                other.send(b"x")
                heard.append(await loop.sock_recv(one, 1))
                if number % 50 == 0:
                    await asyncio.sleep(0.0003)
                    heard.append(await loop.run_in_executor(None, lambda: b"thread"))

        loop.run_until_complete(asyncio.wait_for(answer(), 60))
        loop.poll_busily(0)
        loop.poll_busily(None)
        loop.run_until_complete(asyncio.wait_for(answer(), 60))
    assert heard.count(b"x") == 400
    assert heard.count(b"thread") == 8
