"""Of the buses that a topology names, which does a gateway publish its events on?"""

import pytest

from bus.wire.pattern import Pattern
from topologies.loading.loader import loads
from topologies.wiring.events import EVENTS, LOGS, Topic, keeps_of, own_patterns, publishing_buses
from topologies.wiring.segments import wired

TEXT = """\
name: halls
gateways: {{gw-a: {{address: 10.0.0.1}}, gw-b: {{address: 10.0.0.2}}}}
buses:
  a: {{on: gw-a, listen: ["tcp://0.0.0.0:5001", {{url: "tcp://0.0.0.0:5002", trunk: true}}]{a}}}
  b: {{on: gw-b, listen: ["tcp://0.0.0.0:5003", {{url: "tcp://0.0.0.0:5004", trunk: true}}]{b}}}
  c: {{on: gw-a, listen: ["tcp://0.0.0.0:5005", {{url: "tcp://0.0.0.0:5006", trunk: true}}]{c}}}
{more}
"""
TRUNK = ", dial: [{{url: 'tcp://10.0.0.{0}:{1}', trunk: true}}]"


def publishing(gateway: str, topic: Topic = EVENTS, **words: str) -> list[str]:
    settings = {"a": "", "b": "", "c": "", "more": "events: [a, b, c]"} | words
    return publishing_buses(wired(loads(TEXT.format(**settings))), gateway, topic)


def test_each_gateway_publishes_on_its_own_buses_and_one_without_any_on_none() -> None:
    assert publishing("gw-a") == ["a", "c"]
    assert publishing("gw-b") == ["b"]
    assert publishing("gw-b", more="events: a") == []
    assert publishing("gw-a", more="") == []


def test_of_buses_joined_by_a_trunk_one_gets_an_event_even_over_another_gateway() -> None:
    assert publishing("gw-a", c=TRUNK.format(1, 5002)) == ["a"]
    assert publishing("gw-a", a=TRUNK.format(2, 5004), b=TRUNK.format(1, 5006)) == ["a"]


@pytest.mark.parametrize(
    ("side", "buses"),
    [
        ("", ["a", "c"]),
        (", allow: [[], [buscoupler, event]]", ["a"]),
        (", pattern: [buscoupler, event]", ["a"]),
    ],
    ids=["a bridge", "a bridge that carries events", "a bridge for events"],
)
def test_of_buses_joined_by_a_bridge_both_get_it_unless_the_bridge_carries_it(
    side: str, buses: list[str]
) -> None:
    more = f"events: [c, a]\nbridges: {{j: {{on: gw-b, join: [{{bus: a}}, {{bus: c{side}}}]}}}}"
    assert sorted(publishing("gw-a", more=more)) == buses


def test_events_and_logs_have_buses_of_their_own() -> None:
    assert publishing("gw-a", LOGS) == []
    assert publishing("gw-a", LOGS, more="events: a\nlogs: [c, b]") == ["c"]


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ("", []),
        ("events: a", ["event"]),
        ("events: a\nlogs: a", ["event", "log"]),
        ("devices: {m: {on: gw-a, cache: [a, c]}, n: {on: gw-b, cache: b}}", ["values"]),
    ],
    ids=["nothing said", "events", "events and logs", "caches"],
)
def test_a_bridge_keeps_in_what_is_said_about_the_system_itself(more: str, kept: list[str]) -> None:
    join = "[{bus: a}, {bus: c}, {bus: b, allow: [[], buscoupler]}, {bus: b, pattern: x}]"
    bridge = f"bridges: {{j: {{on: gw-b, join: {join}}}}}\n"
    topology = loads(TEXT.format(a="", b="", c="", more=bridge + more))
    spec = topology.bridges["j"]
    patterns = [tuple(Pattern("buscoupler", word)) for word in kept]
    sides = spec.at("gw-b")
    assert [list(keeps_of(spec, side, own_patterns(topology))) for side in sides[:2]] == [patterns, patterns]
    assert [keeps_of(spec, side, own_patterns(topology)) for side in sides[3:]] == [()]
