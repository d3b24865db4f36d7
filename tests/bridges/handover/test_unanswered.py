"""Commands that a standby hears, and no result of them, have one at its takeover."""

from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.handover.unanswered import KEPT_S, Unanswered
from bridges.policy import Policy
from bus.values import RESULTS_MAX
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import unpack
from bus.wire.pattern import Pattern
from tests.bridges.handover.gate_support import Clock
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import recorder, say

# As of a side whose devices are asked.
DEVICE = Policy(allow_in=[("m",)], allow_out=[("m", "set")], deaf=True, replay_s=0.0, answers=True)
UNSURE = b"not known: it came before a takeover"


class Standby:
    """A bridge of two buses, one of them a trunk, and a device, at a gateway that stands by."""

    def __init__(self, device: Policy = DEVICE, bus: Policy = Policy()) -> None:  # noqa: B008
        self.clock = Clock()
        self.bridge = Bridge("b", 1, clock=self.clock)
        policies = {"bus": bus, "trunk": Policy(trunk=True), "device": device}
        self.sides = [self.bridge.side(name, policy) for name, policy in policies.items()]
        self.gate = self.bridge.stand_by(lambda _: True)
        self.bus, self.trunk, self.device = (recorder(side) for side in self.sides)

    def hear(self, *messages: bytes) -> None:
        say(self.sides[0], self.bus, *messages)

    def told(self) -> list[bytes]:
        """Take over, and return what is told on the bus."""
        self.bus.messages.clear()
        self.gate.resume()
        frames = [unpack(one) for one in self.bus.messages]
        assert {one.tokens for one in frames} <= {Pattern("m", "result")}
        return [bytes(one.data) for one in frames]


def test_a_command_without_a_result_is_not_known_and_one_with_a_result_has_no_second() -> None:
    standby = Standby()
    standby.hear(message("m/set", b"1"), message("m/set", b"2"), message("m/result", b"done"))
    standby.hear(message("m", b"7"), message("x/set", b"1"), message("m/setter", b"1"))
    assert standby.told() == [UNSURE]
    assert standby.device.messages == []  # and is not sent
    standby.gate.pause()
    assert standby.told() == []


def test_a_result_is_that_of_a_command_before_it() -> None:
    standby = Standby()
    standby.hear(message("m/result", b"done"), message("m/set", b"1"))
    assert standby.told() == [UNSURE]


def test_a_command_that_is_heard_twice_by_two_ways_is_one() -> None:
    standby = Standby()
    standby.hear(message("m/set", b"1"))
    say(standby.sides[1], standby.trunk, wrap(message("m/set", b"1"), Envelope(1, 5, 4)))
    assert standby.told() == [UNSURE]


@pytest.mark.parametrize(
    "other",
    [
        {"device": Policy(allow_in=[("m",)], allow_out=[("m", "set")], deaf=True, replay_s=0.0)},
        {"bus": Policy(deny_in=[("m", "set")])},
    ],
    ids=["a side that answers nothing", "a filter"],
)
def test_what_comes_to_no_device_that_is_asked_has_no_result(other: dict[str, Any]) -> None:
    standby = Standby(**other)
    standby.hear(message("m/set", b"1"))
    assert b"not known" not in b"".join(standby.told())


def test_an_old_command_is_forgotten() -> None:
    standby = Standby()
    standby.hear(message("m/set", b"1"))
    standby.clock.sleep(KEPT_S)
    standby.hear(message("m/set", b"2"))
    assert standby.told() == [UNSURE]


def test_many_commands_are_bounded_and_the_rest_is_counted() -> None:
    kept = Unanswered(lambda *_: 2, 0b11)
    kept.hear(0, from_payloads([message("m/set", b"%d" % n) for n in range(RESULTS_MAX + 5)]), 0.0, False)
    assert len(kept.take_results(1.0)) == RESULTS_MAX
    assert kept.untold == 5


def test_each_command_to_a_device_here_has_the_result_that_follows_it() -> None:
    kept = Unanswered(lambda *_: 2, 0b11)
    result = from_payloads([message("m/result", b"done")])
    for n in range(3):
        kept.ask(2, from_payloads([message("m/set", b"%d" % n)]), float(n))
        assert kept.hear(2, result, float(n), True) is result
    assert kept.take_results(3.0) == []
