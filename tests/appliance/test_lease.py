"""A bridge's candidacy on a loop whose time the tests make."""

from collections.abc import Callable
from typing import cast

import pytest

from appliance.lease import Candidacy
from bridges.failover import Candidate
from bridges.gate import Gate
from bus.tmq.lease import Grant


class Timer:
    def cancel(self) -> None:
        pass


class Loop:
    """The few things that a candidacy without brokers asks of a loop."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self.due.append((self.now + delay_s, call))
        return Timer()

    def run(self, seconds: float) -> None:
        end_s = self.now + seconds
        while self.due and min(self.due)[0] <= end_s:
            at_s, call = self.due.pop(self.due.index(min(self.due)))
            self.now = max(self.now, at_s)
            call()
        self.now = end_s


class Told:
    """What a gate is told of a time in which nothing was heard."""

    open = False

    def __init__(self) -> None:
        self.before_s: list[float] = []

    def blind(self, before_s: float) -> None:
        self.before_s.append(before_s)

    def pause(self) -> None:
        pass

    def purge(self) -> None:
        pass


class Standby:
    """A candidate that hears of another's lease at each heartbeat."""

    def __init__(self) -> None:
        self.loop, self.gate = Loop(), Told()
        self.candidate = Candidate((1,), "x", 5, 1, 1)
        self.candidacy = Candidacy(self.candidate, [], lambda: True)
        self.candidacy.gate = cast(Gate, self.gate)
        self.candidacy.open(self.loop)  # type: ignore[arg-type]
        self.candidate.opened(0, self.loop.now)
        self.candidate.heard(0, Grant((1,), "x", acting=True, holder=9, lease_ms=250), self.loop.now)
        self.loop.run(0.5)


@pytest.mark.parametrize(("stall_s", "trusts"), [(0.9, True), (1.2, False)])
def test_a_standby_trusts_what_waited_in_its_sockets_through_a_short_stall(
    stall_s: float, trusts: bool
) -> None:
    one = Standby()
    assert one.candidate.ready
    one.gate.before_s.clear()
    one.loop.now += stall_s
    one.loop.run(0.05)
    assert one.candidate.ready == trusts
    one.loop.run(0.5)
    assert one.candidate.ready
    assert bool(one.gate.before_s) != trusts


def test_a_holder_that_slept_for_a_lease_listens_anew() -> None:
    one = Standby()
    one.candidate.state = "active"
    one.loop.now += 0.3
    one.loop.run(0.05)
    assert not one.candidate.holding
    assert not one.candidate.ready
