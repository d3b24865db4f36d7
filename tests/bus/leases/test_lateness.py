"""How late a candidate is by its heartbeats, and what its log says of that."""

import logging

import pytest

from bus.leases.lateness import Lateness
from bus.leases.pace import STARTING_S, Pace
from bus.machine.stops import Turns

AT_S = STARTING_S + 1.0  # after the start


@pytest.fixture(autouse=True)
def running(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a process that always ran or waited for its turn, without real-time priority."""
    had_s = iter(range(1000))
    monkeypatch.setattr("bus.leases.lateness.turns", lambda: Turns(next(had_s), 0))
    monkeypatch.setattr("bus.leases.lateness.is_real_time", lambda: False)


def settled() -> Pace:
    pace = Pace(250, 2000)
    pace.late(0.0, 0.0)
    return pace


def test_a_lease_that_has_doubled_is_told_once_with_the_lateness_it_is_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    lateness, now = Lateness("fridge", settled()), AT_S
    lateness.beat(now, 1 / 16)
    for late_s in (1 / 64, 1 / 32, 1 / 16, 3 / 32, 5 / 8, 0.0):
        now += 1 / 16 + late_s
        lateness.beat(now, 1 / 16)
    assert caplog.messages == [
        "fridge: this machine or a broker is late by up to 31 ms, so the lease is 500 ms instead of 250",
        "fridge: this machine or a broker is late by up to 94 ms, so the lease is 1000 ms instead of 250",
        "fridge: this machine or a broker is late by up to 625 ms, so the lease is 2000 ms instead of 250",
    ]


def test_a_heartbeat_that_is_just_due_is_noted_and_not_again() -> None:
    pace = settled()
    lateness = Lateness("fridge", pace)
    pace.expect(AT_S)
    lateness.note(AT_S)
    lateness.note(AT_S + 0.1)
    assert pace.judge(AT_S + 0.1) == 250
