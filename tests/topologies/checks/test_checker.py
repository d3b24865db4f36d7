"""Topologies that can be read but are wrong."""

import pytest

from tests.topologies.support import GATEWAY, PAIR, errors, warnings
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.wiring.reach import dials_of, has_trunk

TWO = (
    GATEWAY
    + "buses: {left: {on: gw, listen: 'tcp://127.0.0.1:1'}, right: {on: gw, listen: 'tcp://127.0.0.1:2'}}\n"
)
ALL_TRUNK = (
    "{on: gw, listen: {url: 'tcp://127.0.0.1:%d', trunk: true}, "
    "dial: {url: 'tcp://127.0.0.1:%d', trunk: true}}"
)


def bridge(name: str, rest: str = "", left: str = "", right: str = "") -> str:
    return f"  {name}: {{on: gw, join: [{{bus: left{left}}}, {{bus: right{right}}}]{rest}}}\n"


# Shedding


def test_a_policy_that_cannot_act_is_an_error() -> None:
    def said(side: str) -> list[str]:
        return errors(TWO + f"bridges: {{x: {{on: gw, join: [{{bus: left}}, {side}]}}}}\n")

    inproc = "{url: {address: 'inproc://x', mode: listen}, shed: %s}"
    assert ["state a rate" in text for text in said(inproc % "oldest")] == [True]
    assert said(inproc % "{policy: oldest, rate: 5}") == []
    assert said("{url: 'ws://h:1', shed: oldest}") == []
    assert said("{url: 'tcp://h:1', shed: oldest}") == []


# Loops


def test_two_bridges_between_two_buses_are_a_loop_named_by_its_parts() -> None:
    (text,) = errors(TWO + "bridges:\n" + bridge("x") + bridge("y"))
    assert "bus left -> bridge " in text
    assert "bus right" in text
    assert text.count(" -> ") == 4
    assert "bridge x" in text
    assert "bridge y" in text


def test_one_bridge_is_no_loop() -> None:
    assert errors(TWO + "bridges:\n" + bridge("x")) == []


@pytest.mark.parametrize(
    ("one", "other", "loops"),
    [
        ("[fridge]", "[oven]", False),
        ("[fridge]", "[fridge]", True),
        ("[fridge]", "[fridge, temp]", True),
        ("[]", "[oven]", True),
    ],
)
def test_a_loop_needs_a_frame_that_all_its_bridges_carry(one: str, other: str, loops: bool) -> None:
    text = TWO + "bridges:\n" + bridge("x", f", pattern: {one}") + bridge("y", f", pattern: {other}")
    assert bool(errors(text)) == loops


def test_filters_open_a_loop_only_where_they_stop_every_frame() -> None:
    shut = bridge("y", left=", deny: [[]]")
    assert errors(TWO + "bridges:\n" + bridge("x") + shut) == []
    one_way = bridge("x", left=", deny: {out: [[]]}") + bridge("y", left=", deny: {in: [[]]}")
    assert len(errors(TWO + "bridges:\n" + one_way)) == 1  # in by one bridge, out by the other
    both_out = bridge("x", left=", deny: {out: [[]]}") + bridge("y", left=", deny: {out: [[]]}")
    assert errors(TWO + "bridges:\n" + both_out) == []
    assert (
        errors(TWO + "bridges:\n" + bridge("x", left=", allow: [[a]]") + bridge("y", left=", allow: [[b]]"))
        == []
    )


def test_a_ring_of_dialling_buses_is_a_loop_until_all_of_it_is_trunk() -> None:
    ring = "buses:\n" + "".join(
        f"  {n}: {ALL_TRUNK % (i + 1, (i + 1) % 3 + 1)}\n" for i, n in enumerate("abc")
    )
    assert errors(GATEWAY + ring) == []
    (text,) = errors(GATEWAY + ring.replace("3', trunk: true}}", "3', trunk: false}}"))
    assert "plain: bus b - bus c" in text
    (text,) = errors(GATEWAY + ring.replace("true", "false"))
    assert text.count(" -> ") == 3


MESH = """\
buses:
  p: {on: a, listen: [{url: 'tcp://0.0.0.0:5', trunk: true}], trunks: [q]}
  q: {on: b, listen: %s%s}
"""
TRUNK, PLAIN = "[{url: 'tcp://*:6', trunk: true}]", "['tcp://*:6']"


def test_trunks_by_name_are_trunks_of_a_loop_and_close_one() -> None:
    assert errors(PAIR + MESH % (TRUNK, ", trunks: p")) == []
    (text,) = errors(PAIR + MESH % (TRUNK, ", dial: 'tcp://10.0.0.1:5'"))
    assert "plain: bus q - bus p" in text


def test_of_two_buses_that_name_each_other_the_first_that_can_dials() -> None:
    def dials(other: str) -> list[tuple[str, ...]]:
        topology = loads(PAIR + MESH % (other, ", trunks: p"))
        return [tuple(dial.url for dial in dials_of(topology, bus)) for bus in "pq"]

    assert dials(TRUNK) == [("tcp://10.0.0.2:6",), ()]
    assert dials(PLAIN) == [(), ("tcp://10.0.0.1:5",)]
    alone = loads(PAIR + MESH % (TRUNK, "") + "  r: {on: b, trunks: [q, p]}\n")
    assert [dial.url for dial in dials_of(alone, "r")] == ["tcp://10.0.0.2:6", "tcp://10.0.0.1:5"]
    assert has_trunk(alone.buses["r"])


def test_a_bus_joined_by_a_trunk_needs_a_trunk_address() -> None:
    for listen in (PLAIN, "[{url: 'tcp://127.0.0.1:6', trunk: true}]", "[]"):
        (text,) = errors(PAIR + MESH % (listen, ""))
        assert text == (
            "bus q listens on no trunk address that gateway a can dial: "
            "give q a {url: ..., trunk: true} under listen"
        )
    long = "[{url: 'ws://*:6/%s', trunk: true}]" % ("x" * 1010)  # with the gateway's address it is too long
    assert "listens on no trunk address" in errors(PAIR + MESH % (long, ""))[0]
    assert "names itself" in errors(PAIR + (MESH % (TRUNK, ", trunks: [q, p]")))[0]


def mesh(first: str, count: int) -> str:
    """Return buses that all dial each other, from `first` on."""
    names = [chr(ord(first) + number) for number in range(count)]
    ports = [500 + ord(name) for name in names]
    return "".join(
        f"  {name}: {{on: gw, listen: 'tcp://127.0.0.1:{ports[i]}', "
        f"dial: [{', '.join(f'tcp://127.0.0.1:{port}' for port in ports[:i])}]}}\n"
        for i, name in enumerate(names)
    )


def test_a_mesh_is_one_ring_and_two_meshes_are_two() -> None:
    (text,) = errors(GATEWAY + "buses:\n" + mesh("a", 5))
    assert "in other ways among bus a, bus b, bus c, bus d, bus e;" in text
    assert ", 2 more)" in text
    one, other = errors(GATEWAY + "buses:\n" + mesh("a", 3) + mesh("p", 3))
    assert ("bus a" in one, "bus p" in one, "bus p" in other) == (True, False, True)


def test_a_bus_that_dials_itself_or_twice_is_a_loop() -> None:
    (text,) = errors(GATEWAY + "buses: {a: {on: gw, listen: 'tcp://0.0.0.0:5', dial: 'tcp://localhost:5'}}")
    assert "bus a -> bus a" in text
    left = "buses: {a: {on: gw, listen: 'tcp://127.0.0.1:5'}, b: {on: gw, dial: %s}}"
    assert errors(GATEWAY + left % "['tcp://127.0.0.1:5']") == []
    assert len(errors(GATEWAY + left % "['tcp://127.0.0.1:5', 'tcp://127.0.0.1:5']")) == 1


def test_addresses_of_other_gateways_are_followed() -> None:
    buses = "buses: {p: {on: a, listen: 'tcp://0.0.0.0:5', dial: 'tcp://10.0.0.2:6'}, q: {on: b, listen: 'tcp://*:6'%s}}"
    assert errors(PAIR + buses % "") == []
    assert len(errors(PAIR + buses % ", dial: 'tcp://10.0.0.1:5'")) == 1
    assert errors(PAIR + buses % ", dial: 'tcp://10.0.0.3:5'") == []


def test_a_loop_over_a_shared_can_bus_is_found() -> None:
    can = "can: {channel: can0, interface: socketcan}, segment: hall%s"
    text = PAIR + (
        "buses: {p: {on: a, listen: {url: 'tcp://0.0.0.0:5', trunk: true}}, "
        "q: {on: b, dial: {url: 'tcp://10.0.0.1:5', trunk: true}}}\n"
        f"bridges:\n  x: {{on: a, join: [bus: p, {{{can}}}]}}\n  y: {{on: b, join: [bus: q, {{{can}}}]}}\n"
    )
    (found,) = errors(text % ("", ""))
    assert "plain: " in found
    assert "segment hall" in found
    assert errors(text % (", trunk: true", ", trunk: true")) == []


def test_a_failover_group_is_one_bridge() -> None:
    text = PAIR + (
        "brokers: {m: {on: a, listen: 'tcp://0.0.0.0:9'}}\n"
        "buses: {p: {on: a, listen: 'tcp://0.0.0.0:5'}}\n"
        "bridges: {x: {on: [a, b], join: [bus: p, can: {channel: can0}]}}\n"
    )
    assert errors(text) == []
    shared = [w.split(" shared by")[0] for w in warnings(text) if "exactly once" in w]
    wire = "can socketcan:can0 of 10.0.0.1 and can socketcan:can0 of 10.0.0.2: one wire,"
    assert sorted(shared) == ["bus p is", wire]


# Exclusive things


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("tcp://0.0.0.0:5", "tcp://127.0.0.1:5", True),
        ("tcp://[::]:5", "tcp://127.0.0.1:5", True),
        ("tcp://*:5", "ws://10.0.0.1:5", True),
        ("tcp://0.0.0.0:5", "tcp://[::1]:5", False),
        ("tcp://127.0.0.1:5", "tcp://127.0.0.2:5", False),
        ("tcp://127.0.0.1:5", "tcp://localhost:5", True),
        ("tcp://127.0.0.1:5", "tcp://127.0.0.1:6", False),
        ("tcp://127.0.0.1:0", "tcp://127.0.0.1:0", False),
        ("ws://127.0.0.1:5/a", "ws://127.0.0.1:5/b", True),
        ("ws://127.0.0.1:5/a", "ws://127.0.0.1:5/a", True),
        ("ipc:///tmp/x", "ipc:///tmp//x", True),
        ("ipc:///tmp/x", "ipc:///tmp/y", False),
    ],
)
def test_two_things_on_one_port(one: str, other: str, clash: bool) -> None:
    text = GATEWAY + f"buses: {{a: {{on: gw, listen: '{one}'}}, b: {{on: gw, listen: '{other}'}}}}"
    assert [("bus a" in error and "line 3" in error) for error in errors(text)] == [True] * clash


def test_a_port_is_free_on_another_machine_but_not_on_another_loopback_gateway() -> None:
    buses = "buses: {x: {on: a, listen: 'tcp://0.0.0.0:5'}, y: {on: b, listen: 'tcp://0.0.0.0:5'}}"
    assert errors(PAIR + buses) == []
    assert len(errors("name: t\ngateways: {a: , b: }\n" + buses)) == 1


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("uart: /dev/ttyS0", "uart: /dev//ttyS0", "serial port /dev/ttyS0 is taken by bridge x"),
        ("i2c: {bus: 1, targets: [8, 9]}", "i2c: {bus: 1, targets: [9]}", "target 0x09"),
        ("can: can0", "can: can0", "CAN node id 1"),
        ("can: can0", "can: {channel: can0, node: 2}", ""),
        ("can: can0", "can: {channel: can0, subject: 5}", ""),
        ("can: can0", "can: can1", ""),
        (
            "tcp: {host: '::', port: 7, mode: listen}",
            "url: {address: 'tcp://0.0.0.0:7', mode: listen}",
            "TCP port 7",
        ),
    ],
)
def test_two_bridges_on_one_device(one: str, other: str, words: str) -> None:
    bridges = (
        f"bridges:\n  x: {{on: gw, join: [bus: left, {one}]}}\n  y: {{on: gw, join: [bus: right, {other}]}}\n"
    )
    found = errors(TWO + bridges)
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_one_node_id_on_two_gateways_of_one_can_network() -> None:
    can = "can: {channel: 239.74.163.2, interface: udp_multicast, node: 5}"
    text = (
        PAIR
        + f"bridges: {{x: {{on: a, join: [{can}, uart: /dev/a]}}, y: {{on: b, join: [{can}, uart: /dev/b]}}}}"
    )
    assert any("CAN node id 5" in error for error in errors(text))


# The rest


def test_a_gateway_that_nothing_runs_on() -> None:
    assert errors(PAIR + "buses: {x: {on: a}}") == ["nothing runs on gateway b"]


def test_can_needs_a_node() -> None:
    text = "name: t\ngateways: {gw: }\nbridges: {x: {on: gw, join: [can: can0, uart: /dev/a]}}"
    assert ["needs a node id" in error for error in errors(text)] == [True]
    assert errors(text.replace("can: can0", "can: {channel: can0, listen_only: true}")) == []


def test_names_are_used_once() -> None:
    assert len(errors(TWO + "bridges:\n" + bridge("left"))) == 1


def test_a_bus_elsewhere_must_have_an_address_that_can_be_dialled() -> None:
    text = PAIR + "buses: {p: {on: a, listen: '%s'}}\nbridges: {x: {on: b, join: [{bus: p%s}, uart: /dev/a]}}"
    assert errors(text % ("tcp://0.0.0.0:5", "")) == []
    for url in ("tcp://127.0.0.1:5", "ipc:///tmp/p", "tcp://0.0.0.0:0"):
        assert errors(text % (url, "")) == ["bus p has no address without trunk that gateway b can dial"]
    assert errors(text % ("tcp://0.0.0.0:5", ", trunk: true")) == [
        "bus p has no trunk address that gateway b can dial"
    ]


def test_a_pattern_that_the_bridge_does_not_carry_matches_nothing() -> None:
    whole = TWO + "bridges:\n" + bridge("x", ", pattern: fridge", left=", %s")

    def told(side: str) -> list[str]:
        return [text for text in warnings(whole % side) if not text.startswith("nothing crosses")]

    for dead in ("pattern: oven/temp", "allow: [fridge/temp, oven/temp]", "deny: {in: oven/temp}"):
        assert told(dead) == ["oven/temp matches nothing here: the bridge carries fridge only"]
    limit = "limits: [{pattern: %s, frames_per_s: 1}]"
    for dead in ("opaque: oven/temp", "prefix: oven/temp", limit % "oven/temp"):
        assert told(dead) == ["oven/temp matches nothing here: the bridge carries fridge only"]
    for alive in ("opaque: fridge", "prefix: fridge", limit % "fridge/temp"):
        assert told(alive) == []
    for alive in ("pattern: fridge/temp", "allow: [fridge/temp]", "deny: [/]"):
        assert told(alive) == []


def test_names_with_one_token_are_an_error() -> None:
    # h = 65599 a + b is the same for ("A" + 1, b) and ("A", b + 65599): found by construction.
    one, other = "B" + chr(0x41), "A" + chr(0x41 + 65599)
    text = TWO + "bridges:\n" + bridge("x", f", pattern: [{one}, {other}]")
    assert ["are one token" in error for error in errors(text)] == [True]


def test_findings_stand_where_the_trouble_is() -> None:
    text = TWO + "bridges:\n" + bridge("x") + bridge("left")
    found = [f for f in check(loads(text, "t.yaml")) if "is the name" in f.text]
    assert [(f.file, f.line, f.path) for f in found] == [("t.yaml", 6, "bridges.left")]
