"""A standby that reads a wire late, by the times that the kernel tells: nothing is lost or doubled."""

import time
from collections import Counter, deque

import pytest

from bridges.handover.belated import Belated, Sent
from bus.wire.batch import from_payloads, payloads
from tests.bridges.handover.gate_support import World

STEP_S = 0.01
DIES, TAKES_OVER, STEPS = 400, 440, 600


class LateReader:
    """A plant of a wire and a trunk. `a` forwards, and dies; `b`, which takes over, reads the wire late."""

    def __init__(self, lag_s: float, equal: bool) -> None:
        self.world = World((False, True), 5, equal, known=True)
        self.wire, self.trunk = self.world.media
        self.world.copies["a"].promote()
        self.lag_s, self.came_s = lag_s, deque[float]()

    def step(self) -> None:
        self.world.clock.now += STEP_S
        self.world.stations[0].say(self.world.frame(0))
        self.came_s.append(self.world.clock.now)
        for medium, who in ((self.wire, "a"), (self.trunk, "b"), (self.trunk, "station")):
            if who in medium.ends:
                medium.ends[who].hear(1000)
        self.read(self.lag_s)

    def read(self, lag_s: float) -> None:
        """Let `b` read of the wire what has waited so long, with the times at which it came."""
        now, end = self.world.clock.now, self.wire.ends["b"]
        waited = [now - at_s for at_s in self.came_s if now - at_s >= lag_s]
        end.came_ns = [time.time_ns() - int(one * 1e9) for one in waited]
        end.hear(len(waited))
        end.came_ns = ()
        for _ in waited:
            self.came_s.popleft()

    def run(self) -> tuple[Counter[bytes], Counter[bytes]]:
        for number in range(STEPS):
            if number == DIES:
                self.world.die("a")
            if number == TAKES_OVER:
                self.world.copies["b"].promote()
            self.step()
        self.read(0)
        self.trunk.ends["station"].hear(1000)
        return self.world.stations[0].said, self.world.stations[1].heard


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("lag_s", [0.0, 0.05, 0.3, 1.5, 2.5, 4.5])
def test_a_standby_that_reads_late_loses_and_doubles_nothing(lag_s: float, equal: bool) -> None:
    said, heard = LateReader(lag_s, equal).run()
    assert heard == said


def test_who_was_never_late_looks_at_no_message() -> None:
    belated, batch = Belated(), from_payloads([b"a", b"b"])
    assert belated.unsent(0, batch, [5, 6], 10**18, 100.0, 2.0) is batch
    belated.begin(100.0, [Sent(0, b"b", 100.0)])
    turn_ns = 10**18
    assert belated.unsent(0, batch, [turn_ns, turn_ns], turn_ns, 100.0, 2.0) is batch
    assert belated.unsent(0, batch, [turn_ns - 10**9] * 2, turn_ns, 101.0, 2.0) is batch
    found = belated.unsent(0, batch, [turn_ns - 1, turn_ns - 1], turn_ns, 100.0, 2.0)
    assert found is not None
    assert payloads(found) == [b"a"]
    assert belated.unsent(0, batch, [turn_ns - 3 * 10**9] * 2, turn_ns, 100.0, 2.0) is None
    assert belated.unsent(0, batch, [turn_ns - 3 * 10**9] * 2, turn_ns, 131.0, 2.0) is batch


@pytest.mark.parametrize(
    ("came_s", "heard_s", "kept"),
    [
        (99.0, 99.5, False),
        (99.0, 99.0, False),
        (99.0, 98.5, True),
        (100.0, 100.0, True),
        (98.0, 97.5, True),
        (97.5, 97.0, False),
    ],
)
def test_what_came_before_our_turn_is_new_unless_another_sent_it_since_or_it_is_too_old(
    came_s: float, heard_s: float, kept: bool
) -> None:
    belated, now_ns = Belated(), 10**18
    belated.begin(100.0, [Sent(0, b"b", heard_s)])
    times_ns = [now_ns - int((100.5 - at_s) * 1e9) for at_s in (99.0, came_s)]
    found = belated.unsent(0, from_payloads([b"a", b"b"]), times_ns, now_ns, 100.5, 2.0)
    assert found is not None
    assert payloads(found) == [b"a", *[b"b"] * kept]


def test_what_was_sent_stays_with_its_side_when_a_reload_moves_it() -> None:
    belated, batch, turn_ns = Belated(), from_payloads([b"a"]), 10**18
    belated.begin(100.0, [Sent(0, b"a", 100.0), Sent(1, b"a", 100.0)])
    belated.revise([1, None])
    assert belated.unsent(0, batch, [turn_ns - 1], turn_ns, 100.0, 2.0) is not None
    assert belated.unsent(1, batch, [turn_ns - 1], turn_ns, 100.0, 2.0) is None
