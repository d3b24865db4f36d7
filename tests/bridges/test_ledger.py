"""The check of all accounts finds a missing message, in whichever counter it is missing."""

import pytest

from bridges.bridge import Bridge
from bridges.policy import Policy
from bus.balance import imbalances
from bus.hub import Hub, chain
from bus.ledger import Stats
from bus.patch import join
from tests.bridges.support import FRAME, MESSAGE, RecordingPipe, recorder, say


def plant() -> tuple[Hub, Bridge, RecordingPipe]:
    """Return a bus, a bridge with a filter, and a pipe on its far side; some messages have crossed."""
    bus, bridge = Hub("bus"), Bridge("joint", 7, sequence=0)
    join(bus, bridge.side("bus", Policy(deny_out=[[0x11223344]])))
    far = recorder(bridge.side("far", Policy(trunk=True)), "far")
    say(bus, None, FRAME, b"rubbish")
    say(bridge.sides[1], far, MESSAGE, MESSAGE)
    return bus, bridge, far


def test_what_was_dropped_and_rejected_is_accounted_for() -> None:
    bus, bridge, far = plant()
    assert imbalances([bus, bridge]) == []
    assert far.stats.received == 2
    assert bridge.sides[0].ports[0].stats.dropped == {"pattern": 1}


def test_a_pipe_that_was_there_before_is_looked_at_from_then_on() -> None:
    bus, bridge, far = plant()
    bridge.sides[1].detach(far)
    say(bus, None, FRAME)
    bridge.sides[1].attach(far)
    say(bus, None, FRAME)
    assert imbalances([bus, bridge]) == []


@pytest.mark.parametrize(
    ("field", "whose", "said"),
    [
        ("sent", "pipe", "far: 1 of 1 offered are unaccounted for"),
        ("offered", "pipe", "far: -1 of 0 offered are unaccounted for"),
        ("received", "pipe", "far: 0 came in, 1 were received"),
        ("sent", "port", "joint/far/far: 1 of 1 offered are unaccounted for"),
        ("received", "port", "far: 1 came in, 0 were received"),
        ("offered", "port", "far: 0 were offered, 1 were due"),
    ],
)
def test_whatever_is_not_counted_is_found(field: str, whose: str, said: str) -> None:
    bus, bridge, far = plant()
    port = bridge.sides[1].ports[0]
    stats: Stats = {"pipe": far, "port": port}[whose].stats
    setattr(stats, field, getattr(stats, field) - 1)
    assert f"joint | {said}" in imbalances([bus, bridge])
    setattr(stats, field, getattr(stats, field) + 1)


def test_a_port_stands_for_the_pipe_behind_it() -> None:
    _, bridge, far = plant()
    port = bridge.sides[1].ports[0]
    assert [*chain(port)] == [port, far]
