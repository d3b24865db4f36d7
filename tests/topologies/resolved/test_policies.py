"""Tests of the rules of sides, as they are resolved for a gateway."""

import pytest

from bridges.policy import STEP_S, Policy
from topologies.loading.loader import loads
from topologies.resolved.bridges import ResolvedSide
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

HEAD = (
    "name: t\ngateways: {a: {node: 1}, b: {node: 2}}\nbrokers: {m: {on: a, listen: 'tcp://0.0.0.0:9942'}}\n"
)


def side_of(side: str, gateway: str = "b") -> ResolvedSide:
    buses = "buses: {p: {on: a, listen: 'tcp://0.0.0.0:5555'}}\n"
    bridges = f"bridges: {{x: {{on: [a, b], join: [bus: p, {side}]}}}}"
    return resolve(wired(loads(f"{HEAD}{buses}{bridges}")), gateway).bridges["x"].sides[1]


def policy_of(side: str, gateway: str = "b") -> Policy:
    return side_of(side, gateway).policy


def test_a_trunk_on_a_shared_wire_is_held_back_for_each_candidate_before() -> None:
    side = "{can: {channel: can0}, trunk: true}"
    assert [policy_of(side, gateway).hold_s for gateway in "ab"] == [0.0, STEP_S]
    assert policy_of(side).trunk


def test_patterns_hold_in_the_direction_that_they_were_written_for() -> None:
    found = policy_of("{can: {channel: can0}, allow: [x], deny: {in: [y], out: [z]}}")
    assert (found.allow, found.deny) == ((("x",),), ())
    assert (found.deny_in, found.deny_out) == ((("y",),), (("z",),))


@pytest.mark.parametrize(("shed", "replay_s"), [("", 0.08), (", shed: {policy: oldest, age_ms: 70}", 0.07)])
def test_the_age_of_shed_counts_at_a_takeover_or_else_that_of_the_medium(shed: str, replay_s: float) -> None:
    assert policy_of(f"{{can: {{channel: can0, age_ms: 80}}{shed}}}").replay_s == replay_s


def test_a_protocol_that_asks_answers_each_command_and_sends_none_again() -> None:
    found = policy_of("{uart: /dev/ttyS0, protocol: {modbus: {registers: [{register: 0, pattern: rpm}]}}}")
    assert (found.answers, found.replay_s, found.deaf, found.stops_in_doubt) == (True, 0.0, True, False)


def test_a_side_has_a_front_only_if_something_stands_there() -> None:
    assert side_of("{can: {channel: can0}}").front is None
    made = side_of("{can: {channel: can0}, unchanged: drop, refresh_ms: 250}").front
    assert made is not None
    assert made.refresh_s == 0.25
