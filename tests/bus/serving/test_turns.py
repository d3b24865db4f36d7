"""Long work by turns, counted in units, on an event loop that the test turns."""

from collections.abc import Callable, Iterator

import pytest

from bus.allowance import Allowance
from bus.serving.turns import TURN_UNITS, Turns


class Loop:
    """An event loop, as far as turns use it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[..., None], tuple[object, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def call_later(self, delay_s: float, call: Callable[..., None], *arguments: object) -> None:
        self.later.append((self.now + delay_s, call, arguments))

    def turn(self) -> bool:
        """Take one turn. Return whether anything waits for the next one."""
        soon, self.soon = self.soon, []
        for call in soon:
            call()
        return bool(self.soon)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        due, self.later = (
            [one for one in self.later if one[0] <= self.now],
            [one for one in self.later if one[0] > self.now],
        )
        for _, call, arguments in due:
            call(*arguments)
        while self.turn():
            pass


class Desk:
    """Turns on such a loop, and jobs that note what they do."""

    def __init__(self, **options: float) -> None:
        self.loop, self.done = Loop(), list[str]()
        self.turns = Turns(**options)  # type: ignore[arg-type]
        self.turns.open(self.loop)  # type: ignore[arg-type]

    def job(self, name: str, steps: int, units: int = 1) -> Iterator[int]:
        for _ in range(steps):
            self.done.append(name)
            yield units

    def put(self, name: str, steps: int, host: str = "", units: int = 1) -> bool:
        return self.turns.put(name, host, self.job(name, steps, units))


def test_a_short_job_is_done_at_once() -> None:
    desk = Desk()
    assert desk.put("a", 3)
    assert desk.done == ["a"] * 3
    assert not desk.turns.waits("a")


def test_a_long_job_does_a_bounded_number_of_units_in_a_turn() -> None:
    desk = Desk()
    desk.put("a", 1000)
    assert len(desk.done) <= TURN_UNITS
    while desk.turns.waits("a"):
        before = len(desk.done)
        desk.loop.turn()
        assert 0 < len(desk.done) - before <= TURN_UNITS
    assert len(desk.done) == 1000


def test_all_jobs_together_have_one_turn() -> None:
    desk = Desk()
    for number in range(100):
        desk.put(f"{number}", 10)
    assert len(desk.done) <= TURN_UNITS
    while desk.loop.turn():
        pass
    assert len(desk.done) == 1000


def test_a_step_of_many_units_ends_the_turn() -> None:
    desk = Desk()
    desk.put("a", 10, units=TURN_UNITS)
    assert len(desk.done) == 1
    desk.loop.turn()
    assert len(desk.done) == 2


@pytest.mark.parametrize("hosts", [("", ""), ("h", "h"), ("h", "i")])
def test_a_short_job_need_not_wait_for_a_long_one_that_came_before(hosts: tuple[str, str]) -> None:
    desk = Desk()
    desk.put("long", 10_000, hosts[0])
    desk.put("short", 3, hosts[1])
    desk.loop.turn()
    assert desk.done.count("short") == 3
    assert desk.turns.waits("long")


def test_jobs_of_one_key_keep_their_order() -> None:
    desk = Desk()
    desk.put("a", 100)
    desk.turns.put("a", "", desk.job("b", 1))
    desk.turns.put("a", "", desk.job("c", 1))
    while desk.loop.turn():
        pass
    assert desk.done == ["a"] * 100 + ["b", "c"]


def test_a_host_is_slowed_down_to_its_rate_and_others_are_not() -> None:
    desk = Desk(rate=1000.0, at_once=100.0)
    desk.put("greedy", 5000, "h")
    while desk.loop.turn():
        pass
    assert 100 <= len(desk.done) <= 100 + TURN_UNITS
    desk.put("other", 20, "i")
    desk.loop.turn()
    assert desk.done.count("other") == 20
    for _ in range(100):
        desk.loop.wait(0.01)
    assert 1000 <= desk.done.count("greedy") <= 1200
    assert desk.turns.waits("greedy")


def test_what_waits_for_one_host_is_bounded() -> None:
    desk = Desk(rate=1.0, at_once=1.0)
    assert all(desk.put(f"{number}", 2, "h") for number in range(4096))
    assert not all(desk.put(f"more {number}", 2, "h") for number in range(200))
    assert desk.put("other", 1, "i")


def test_a_job_that_fails_is_given_up_and_the_others_go_on() -> None:
    desk = Desk()

    def fail() -> Iterator[int]:
        yield 1
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        desk.turns.put("bad", "", fail())
    desk.put("good", 2)
    while desk.loop.turn():
        pass
    assert desk.done == ["good"] * 2
    assert not desk.turns.waits("bad")


def test_nothing_is_done_after_the_end() -> None:
    desk = Desk()
    desk.put("a", 1000, "h")
    done = len(desk.done)
    desk.turns.close()
    desk.loop.wait(1.0)
    assert len(desk.done) == done


def test_an_allowance_fills_up_with_time_and_no_further() -> None:
    allowance = Allowance(rate=10.0, at_once=5.0, now=0.0)
    assert allowance.full(0.0)
    allowance.take(7, 0.0)
    assert allowance.left(0.1) == -1.0
    assert not allowance.full(0.6)
    assert allowance.left(0.3) == 1.0
    assert allowance.left(9.0) == 5.0
