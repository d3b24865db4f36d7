"""Rejections: all are counted, and few are logged."""

import logging

import pytest

from bus.serving.rejections import Rejections


class Clock:
    """A clock that stands still until it is set."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reject(clock: Clock) -> Rejections:
    return Rejections("service", {}, logging.getLogger("serving"), clock)


def test_a_reason_of_a_host_is_logged_once_a_minute(
    reject: Rejections, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for clock.now_s in (1000.0, 1000.1, 1059.9, 1060.0, 1061.0):
        reject("framing", "10.0.0.1")
        reject("framing", "10.0.0.2", 2)
        reject("greeting")
    assert reject.counts == {"framing": 15, "greeting": 5}
    once = [f"service: refused from {who}" for who in ("10.0.0.1: framing", "10.0.0.2: framing")]
    once.append("service: refused from a peer: greeting")
    assert [record.getMessage() for record in caplog.records] == once * 2


def test_a_flood_from_ever_new_hosts_is_counted_and_not_remembered(
    reject: Rejections, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(10_000):
        reject("framing", f"10.0.{number // 256}.{number % 256}")
    assert reject.counts == {"framing": 10_000}
    assert len(caplog.records) == 256
    clock.now_s += 61.0
    reject("framing", "10.9.9.9")
    assert len(caplog.records) == 257
