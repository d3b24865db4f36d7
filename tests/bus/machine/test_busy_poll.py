"""How long a loop looks for events before it sleeps."""

import asyncio
import os
import random
import socket
from contextlib import closing
from pathlib import Path

import pytest

from bus.machine.busy_poll import DEFAULT_US, SPELL_S, BusyPoll, default_us
from bus.machine.wake_hook import WakefulLoop

LIMIT_S = 50e-6
SHORT_S, LONG_S = 20e-6, 5e-3


class Trials:
    """A loop of a simulated machine: events come after given times. It counts looks, and those in vain."""

    def __init__(self, limit_us: int = DEFAULT_US) -> None:
        self.judge = BusyPoll(limit_us)
        self.now_s, self.looks, self.vain_s, self.sleeps = 1.0, 0, 0.0, 0

    def wait(self, gap_s: float, heard_while_looking: bool = True) -> None:
        """Wait for an event that comes `gap_s` later, to a sleeper only if not `heard_while_looking`."""
        began_s, span_s = self.now_s, self.judge.span_s(self.now_s)
        self.looks += span_s > 0
        if heard_while_looking and gap_s < span_s:
            self.now_s += gap_s
            self.judge.found()
            return
        self.vain_s += span_s
        self.sleeps += 1
        self.now_s += span_s + gap_s if not heard_while_looking else gap_s
        self.judge.slept(began_s, self.now_s, looked=span_s > 0)


def test_a_dialogue_is_heard_without_sleep() -> None:
    one = Trials()
    for _ in range(1000):
        one.wait(SHORT_S)
    assert one.sleeps < 12
    assert one.vain_s == 0


def test_messages_far_apart_are_slept_for() -> None:
    one = Trials()
    for _ in range(1000):
        one.wait(LONG_S)
    assert one.looks == 0


def test_a_dialogue_that_ends_costs_a_look_or_two() -> None:
    one = Trials()
    for _ in range(100):
        one.wait(SHORT_S)
    before = one.looks
    for _ in range(1000):
        one.wait(LONG_S)
    assert 1 <= one.looks - before <= 2
    assert one.vain_s <= 2 * LIMIT_S + 1e-9


def test_a_peer_on_the_same_core_is_let_run() -> None:
    """It answers soon while the loop sleeps, and not at all while the loop looks."""
    one = Trials()
    for _ in range(100_000):
        one.wait(SHORT_S, heard_while_looking=False)
    assert 10 < one.looks < 200
    assert one.vain_s < 0.005 * (one.now_s - 1)


@pytest.mark.parametrize("seed", range(20))
def test_looks_in_vain_are_a_small_share_of_any_time(seed: int) -> None:
    """Whatever the pattern: what is spent in vain is less than what was won, or nearly nothing."""
    chance, one = random.Random(seed), Trials()
    for _ in range(2000):
        share = chance.choice((0.0, 0.3, 0.7, 0.79, 0.9, 1.0))
        for _ in range(chance.randrange(1, 30)):
            one.wait(SHORT_S if chance.random() < share else LONG_S, chance.random() < 0.9)
    assert one.vain_s < 0.02 * (one.now_s - 1)


def test_the_loop_sleeps_now_and_then_in_a_dialogue_without_end() -> None:
    """Else the kernel takes a thread of real-time priority for a greedy one."""
    one = Trials()
    while one.now_s < 1 + 10 * SPELL_S:
        one.wait(SHORT_S)
    assert 9 <= one.sleeps <= 40


def test_a_limit_of_zero_never_looks() -> None:
    one = Trials(0)
    for _ in range(1000):
        one.wait(0.0)
    assert one.looks == 0


@pytest.mark.parametrize(
    ("quota", "limit_us"),
    [("max 100000\n", DEFAULT_US), ("200000 100000\n", DEFAULT_US), ("150000 100000", 0), ("", DEFAULT_US)],
)
def test_a_part_of_a_machine_below_two_processors_never_looks(
    quota: str, limit_us: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    (tmp_path / "cpu.max").write_text(quota)
    assert default_us(tmp_path / "cpu.max") == limit_us
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert default_us(tmp_path / "cpu.max") == 0


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
