"""The benchmark of an outage: what its program counts."""

import time
from pathlib import Path

from benchmarks.durable import message
from benchmarks.outage import Ear, Outage
from bus.lateness import LATE_MS
from bus.wire.batch import from_payloads


def test_what_comes_twice_again_and_out_of_order_is_counted_apart() -> None:
    ear, now_ns = Ear(), time.monotonic_ns()
    late_ns = now_ns - 2 * LATE_MS * 1_000_000
    ear.send(from_payloads([message(number, late_ns) for number in (0, 1, 3, 2, 3)]))
    ear.send(from_payloads([message(9, now_ns), message(8, now_ns)]))  # a new one overtook it
    assert (ear.count, ear.doubled, ear.again, ear.disordered) == (7, 1, 0, 1)
    ear.begin_life()
    ear.send(from_payloads([message(number, late_ns) for number in (2, 3, 4)]))
    assert (ear.doubled, ear.again, ear.disordered) == (1, 2, 1)


def test_what_was_said_while_the_gateway_was_dead_is_not_waited_for(tmp_path: Path) -> None:
    outage = Outage(tmp_path)
    outage.said, outage.deaf = [(0, 1.0), (5, 2.0), (7, 3.0)], [(1.5, 2.5)]
    outage.ear.send(from_payloads([message(number, 0) for number in (0, 1, 2, 3, 4, 7)]))
    assert not outage.lost(8)
    assert outage.lost(9)
    assert outage.missing() == []  # nothing was said
