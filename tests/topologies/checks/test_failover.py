"""Bridges on several gateways: what `check` finds where one cannot stand in for another."""

import pytest

from tests.topologies.support import errors, warnings
from topologies.loading.loader import loads
from topologies.model import Candidate, candidates_of
from topologies.picture.show import show
from topologies.resolved.ranks import Rank
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

PAIR = """\
name: t
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}, c: {address: 10.0.0.3}}
brokers: {m: {on: c, listen: 'tcp://0.0.0.0:9942'}}
buses:
  one: {on: a, listen: ['tcp://0.0.0.0:5', {url: 'tcp://0.0.0.0:6', trunk: true}, 'ipc:///run/hall.sock']%s}
  two: {on: b, listen: ['tcp://0.0.0.0:5', {url: 'tcp://0.0.0.0:6', trunk: true}, 'ipc:///run/hall.sock']}
  hub: {on: c, listen: ['tcp://0.0.0.0:5', {url: 'tcp://0.0.0.0:6', trunk: true}]}
bridges:
  x:
    on: [a, b]
    join:
      - %s
      - can: {channel: {a: can0, b: can1}}
        trunk: true
"""
JOINED = ", trunks: [two, hub]"
OWN = "bus: {a: one, b: two}"


def lonely(bus: str, gateway: str, owner: str) -> str:
    return (
        f"bus {bus} lives on {owner}: when {owner} dies, {gateway} has nothing to join here; "
        f"give it a bus of its own, bus: {{{owner}: {bus}, {gateway}: ...}}, and join both by trunks"
    )


@pytest.mark.parametrize(
    ("side", "found"),
    [
        (OWN, []),
        ("bus: hub", []),
        ("bus: one", [lonely("one", "b", "a")]),
        ("bus: {a: two, b: two}", [lonely("two", "a", "b")]),
        ("url: {address: {a: 'ipc:///run/hall.sock', b: 'ipc:///run/hall.sock'}}", []),
        ("{url: 'tcp://10.0.0.1:6', trunk: true}", [lonely("one", "b", "a")]),
        ("{url: 'tcp://10.0.0.3:6', trunk: true}", []),
    ],
)
def test_a_bus_of_one_candidate_leaves_the_others_with_nothing_to_join(side: str, found: list[str]) -> None:
    assert [text for text in warnings(PAIR % (JOINED, side)) if "exactly once" not in text] == found


def test_buses_of_the_candidates_must_be_joined() -> None:
    (text,) = warnings(PAIR % ("", OWN))
    assert text.startswith(
        "bus one of a and bus two of b are not joined: while one gateway forwards, nothing"
    )
    assert warnings(PAIR % (", dial: 'tcp://10.0.0.2:5'", OWN)) == []
    apart = (PAIR % (JOINED, OWN)).replace("trunk: true\n", "segment: {a: left, b: right}\n")
    assert ["segment left of a and segment right of b" in text for text in warnings(apart)] == [True]


def test_candidates_need_a_broker() -> None:
    text = (PAIR % (JOINED, OWN)).replace("brokers: {m: {on: c, listen: 'tcp://0.0.0.0:9942'}}\n", "")
    assert errors(text) == ["a, b stand in for each other at bridge x: add a broker to choose one (brokers:)"]


def test_a_wire_of_the_candidates_is_one_whatever_its_name_but_buses_are_not() -> None:
    wires = {(joint.gateway, joint.number): joint.wire for joint in wired(loads(PAIR % (JOINED, OWN))).joints}
    assert wires["a", 1] == wires["b", 1]
    assert (wires["a", 0], wires["b", 0]) == ("bus one", "bus two")


def test_a_loop_is_found_whichever_candidate_forwards() -> None:
    second = "  y: {on: b, join: [bus: two, can: {channel: can1, node: 3}]}\n"
    (both,) = errors(PAIR % (JOINED, OWN) + second)
    assert "and in other ways among bridge x, bridge y, bus one, bus two" in both
    (standby,) = errors(PAIR % ("", OWN) + second)
    assert "bus two" in standby
    assert "bus one" not in standby


def test_candidates_with_a_plain_way_between_their_buses_are_no_loop() -> None:
    plain = PAIR % (", dial: 'tcp://10.0.0.2:5'", OWN + "\n        trunk: false")
    assert errors(plain) == []


def test_the_slowest_medium_of_the_candidates_is_held_against_the_rates() -> None:
    text = (PAIR % (JOINED, OWN)).replace(
        "can: {channel: {a: can0, b: can1}}", "uart: {port: /dev/x, baud: %s}"
    )
    text += "    rates: [{frames_per_s: 500}]\n"
    assert errors(text % "{a: 921600, b: 921600}") == []
    (found,) = errors(text % "{a: 921600, b: 9600}")
    assert "of what it can carry" in found


def test_pictures_show_each_gateway_its_own() -> None:
    topology = loads(PAIR % (JOINED, OWN))
    text = show(topology)
    assert text.count("─ bus one  trunk") == text.count("─ bus two  trunk") == 1
    assert text.index("can can0") < text.index("gateway b") < text.index("can can1")
    lines = show(topology, "mermaid").split("\n")
    assert len([line for line in lines if '-.-|"b"|' in line]) == 1


GROUP = """\
name: t
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}}
brokers: {m: {on: a, listen: 'tcp://0.0.0.0:9942'}}
buses:
  one: {on: a, listen: [{url: 'tcp://0.0.0.0:6', trunk: true}], trunks: two}
  two: {on: b, listen: [{url: 'tcp://0.0.0.0:6', trunk: true}]}
bridges:
  left: {on: a, pattern: motor, group: %s, join: [bus: one, {can: can0, trunk: true}]}
  right: {on: %s, pattern: %s, group: %s, join: [%s]}
"""
RIGHT = "bus: two, {can: can1, trunk: true}"


def grouped(*words: str, join: str = RIGHT) -> str:
    group, gateway, pattern, other = words or ("pair", "b", "[motor]", "pair")
    return GROUP % (group, gateway, pattern, other, join)


def test_bridges_of_a_group_are_candidates_for_one_lease() -> None:
    topology = loads(grouped())
    assert warnings(grouped()) == errors(grouped()) == []
    both = (Candidate("left", "a"), Candidate("right", "b"))
    assert candidates_of(topology, "left") == candidates_of(topology, "right") == both
    assert [resolve(wired(topology), gateway).bridges[bridge].sides[1].rank for bridge, gateway in both] == [
        Rank(0, 0),
        Rank(1, 0),
    ]
    wires = {joint.wire for joint in wired(topology).joints if joint.number == 1}
    assert len(wires) == 1
    assert "bridge right  group pair  2 of 2  pattern motor" in show(topology)


def test_without_a_group_they_are_a_loop_and_do_not_stand_in_for_each_other() -> None:
    text = grouped().replace("group: pair, ", "").replace("{can: can", "{segment: hall, can: can")
    topology = loads(text)
    assert candidates_of(topology, "left") == (Candidate("left", "a"),)
    assert errors(text) == []
    (loop,) = errors(text.replace("can1, trunk: true}", "can1, trunk: false}"))
    assert "frames would go round" in loop
    plain = grouped().replace("can1, trunk: true}", "can1, trunk: false}")
    assert errors(plain) == []
    assert ["exactly once" in found for found in warnings(plain)] == [True]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            grouped("pair", "b", "motor/x", "pair"),
            "its pattern is motor/x, that of bridge left of the same group is motor: one lease",
        ),
        (grouped("pair", "[b, a]", "motor", "pair"), "gateway a runs bridge left of the same group already"),
        (
            grouped(join=RIGHT + ", uart: /dev/x"),
            "it joins 3 sides, bridge left of the same group joins 2",
        ),
        (
            grouped(join="{can: can1, trunk: true}, bus: two"),
            "side 1 is can, in bridge left of the same group",
        ),
        (grouped("right", "b", "motor", "other"), "group right of bridge left is also the name of a bridge"),
    ],
)
def test_contradictions_in_a_group_are_errors(text: str, found: str) -> None:
    assert found in "".join(errors(text))


def test_a_group_of_one_is_a_warning() -> None:
    assert warnings(grouped("pari", "b", "oven", "pair"))[0] == (
        'bridge left is alone in group pari, and nothing stands in for it; did you mean "pair"?'
    )


def test_a_bus_by_its_address_stands_in_for_a_bus_by_name() -> None:
    assert errors(grouped(join="{url: 'tcp://10.0.0.2:6', trunk: true}, {can: can1, trunk: true}")) == []


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("prefix: {a: hall, b: yard}", 1),
        ("prefix: hall", 0),
        ("rename: {t: u}", 0),
        ("segment: {a: left, b: right}, prefix: {a: hall, b: yard}", 0),
    ],
)
def test_candidates_call_the_frames_of_one_wire_alike(more: str, count: int) -> None:
    settings = "".join(f"        {one}\n" for one in more.replace("}, ", "}\n").split("\n"))
    text = PAIR % (JOINED, OWN) + settings
    found = [one for one in errors(text) if "has other names on b than on a" in one]
    assert len(found) == count


PARALLEL = PAIR.replace("    join:\n", "    failover: parallel\n    join:\n")


def test_all_forward_at_once_without_a_broker_and_are_all_drawn_so() -> None:
    text = PARALLEL.replace("brokers: {m: {on: c, listen: 'tcp://0.0.0.0:9942'}}\n", "") % (JOINED, OWN)
    assert errors(text) == []
    wiring = wired(loads(text, "t.yaml"))
    assert wiring.best == {Candidate("x", "a"), Candidate("x", "b")}
    assert "2 of 2 in parallel" in show(wiring.topology)


def test_a_side_without_envelopes_is_refused_where_all_forward() -> None:
    found = errors((PARALLEL % (JOINED, OWN)).replace("        trunk: true\n", ""))
    why = "carries no envelopes, so receivers know no copies: make it a trunk, or write failover: leased"
    assert found == [f"can of a {why}", f"can of b {why}"]


def test_a_side_that_asks_is_refused_where_all_forward() -> None:
    text = (PARALLEL % (JOINED, OWN)).replace(
        "can: {channel: {a: can0, b: can1}}", "i2c: {bus: 1, targets: [32]}"
    )
    why = "asks its devices, which know one gateway at a time: write failover: leased"
    assert errors(text) == [f"i2c of a {why}", f"i2c of b {why}"]


def test_nobody_forwards_in_parallel_alone() -> None:
    text = PARALLEL.replace("on: [a, b]\n", "on: [a]\n") % (JOINED, "bus: one")
    why = "so failover: parallel changes nothing: name several gateways in on, or take it out"
    assert f"only a runs bridge x, {why}" in errors(text.replace("{a: can0, b: can1}", "can0"))
