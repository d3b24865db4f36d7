"""The wires that TMQ brokers make: rings, failover groups, and how they are drawn."""

import pytest

from tests.topologies.checks.broker_support import BROKERS, text
from tests.topologies.support import PAIR, errors, warnings
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.picture.show import show
from topologies.wiring.segments import wired

# Wires

BRIDGES = ("on: a, join: [bus: p, {tmq: %s}]", "on: b, join: [bus: q, {tmq: %s}]")


def ring(one: str, other: str, more: str = "", brokers: str = BROKERS, head: str = PAIR) -> list[str]:
    """Return the errors where bridges on two gateways join one bus and TMQ sides."""
    return errors(text(BRIDGES[0] % one, BRIDGES[1] % other + more, brokers=brokers, head=head))


@pytest.mark.parametrize(
    ("one", "other", "is_ring"),
    [
        ("{}", "{}", True),
        ("{brokers: main}", "{brokers: main}", True),
        ("{brokers: main}", "{brokers: spare}", True),  # all brokers of a file share registrations
        ("{brokers: main}", "{brokers: tcp://10.0.0.2:9943}", True),  # an address of spare
        ("{brokers: main}", "{brokers: tcp://127.0.0.1:9943}", True),  # on b, that of spare too
        ("{brokers: main}", "{brokers: tcp://127.0.0.1:9942}", False),  # on b, that of nobody
        ("{brokers: main}", "{brokers: tcp://10.0.0.9:9942}", False),
        ("{brokers: main}", "{brokers: [tcp://10.0.0.9:1, spare]}", True),
        ("{brokers: [tcp://10.0.0.9:1, main]}", "{brokers: tcp://10.0.0.9:1}", True),
        ("{brokers: [tcp://10.0.0.9:1, tcp://h:1]}", "{brokers: [tcp://h:2, tcp://h:1]}", True),
        ("{brokers: [tcp://10.0.0.9:1, tcp://h:1]}", "{brokers: [tcp://h:2, tcp://h:3]}", False),
        ("{brokers: tcp://127.0.0.1:1}", "{brokers: tcp://127.0.0.1:1}", False),  # each its own machine's
        ("{brokers: tcp://127.0.0.1:1}", "{brokers: tcp://localhost:1}", False),
        ("{brokers: tcp://127.0.0.1:1}", "{brokers: tcp://10.0.0.1:1}", True),  # a's from both
        ("{brokers: tcp://010.example:1}", "{brokers: tcp://010.example:1}", True),
    ],
)
def test_a_ring_through_brokers_is_found(one: str, other: str, is_ring: bool) -> None:
    found = ring(one, other)
    assert [words.partition(":")[0] for words in found] == ["frames would go round"] * is_ring


def test_a_ring_through_a_broker_is_said_with_what_to_do() -> None:
    (found,) = ring("{brokers: main}", "{brokers: spare}")
    assert found == (
        "frames would go round: bus p -> bus q -> bridge y -> tmq main -> bridge x -> bus p; "
        "open it by patterns: no trunk is possible at tmq main - bridge x, bridge y - tmq main"
    )
    (far,) = ring("{brokers: tcp://h:1}", "{brokers: tcp://h:1}")
    assert "-> tmq h:1 ->" in far


def test_loopback_gateways_share_their_loopback() -> None:
    near = "name: t\ngateways: {a: {}, b: {address: 127.0.0.2}}\n"
    brokers = "brokers: {main: {on: a, listen: 'tcp://127.0.0.1:9'}}\n"
    for one, other in (("tcp://127.0.0.1:1", "tcp://localhost:1"), ("main", "tcp://127.0.0.1:9")):
        bridges = BRIDGES[0] % f"{{brokers: {one}}}", BRIDGES[1] % f"{{brokers: {other}}}"
        found = errors(text(*bridges, head=near, brokers=brokers).replace("10.0.0.1:5", "127.0.0.1:5"))
        assert len(found) == 1


@pytest.mark.parametrize(
    ("one", "other", "is_ring"),
    [
        ("{publish: [fridge], subscribe: []}", "{subscribe: [fridge], publish: []}", True),
        ("{publish: [], subscribe: [fridge]}", "{subscribe: [], publish: [fridge/temp]}", True),
        ("{publish: [fridge], subscribe: []}", "{subscribe: [alert], publish: []}", False),
        ("{publish: [fridge], subscribe: []}", "{subscribe: [], publish: [fridge]}", False),
        ("{publish: [fridge], subscribe: [alert]}", "{subscribe: [fridge], publish: [alert]}", True),
        ("{publish: [fridge], subscribe: [alert]}", "{subscribe: [alert], publish: [fridge]}", False),
        ("{publish: []}", "{publish: []}", False),
        ("{subscribe: []}", "{publish: []}", True),
        ("{subscribe: []}", "{subscribe: []}", False),
        ("{subscribe: fridge}", "{subscribe: [], publish: alert}", False),
    ],
)
def test_a_ring_that_subscribe_or_publish_opens_is_none(one: str, other: str, is_ring: bool) -> None:
    assert bool(ring(one, other)) == is_ring


def test_each_candidate_is_judged_by_what_it_lets_through() -> None:
    bridge = "on: [a, b], join: [bus: p, tmq: {subscribe: {a: [], b: fridge}}]"
    back = "on: b, join: [bus: q, {tmq: {subscribe: [], publish: %s}}]"
    (found,) = errors(text(bridge, back % "fridge"))
    assert "frames would go round" in found
    assert errors(text(bridge, back % "alert")) == []


def test_deny_opens_a_ring_too() -> None:
    shut = text(BRIDGES[0] % "{}", BRIDGES[1].replace("%s}", "{}, deny: /}"))
    assert errors(shut) == []
    assert len(errors(shut.replace("deny: /", "deny: fridge"))) == 1


def test_two_sides_of_one_bridge_on_one_network_are_a_ring() -> None:
    (found,) = errors(text("on: a, join: [tmq: {brokers: main}, tmq: {brokers: spare}]"))
    assert "bridge x -> tmq main -> bridge x" in found
    assert errors(text("on: a, join: [tmq: {}, tmq: {brokers: 'tcp://h:1'}]")) == []
    apart = "on: a, join: [tmq: {subscribe: fridge, publish: []}, tmq: {subscribe: [], publish: alert}]"
    assert errors(text(apart)) == []


def test_a_bus_that_joins_one_network_on_two_ways_is_in_a_ring() -> None:
    twice = "on: a, join: [bus: p, {tmq: {}}]"
    (found,) = errors(text(twice, twice))
    assert "bus p -> bridge" in found
    (found,) = errors(text("on: a, join: [bus: p, {tmq: {}}, {tmq: {brokers: tcp://10.0.0.2:9943}}]"))
    assert "tmq main" in found


def test_networks_that_a_third_side_joins_are_one() -> None:
    sides = "{tmq: {brokers: tcp://h:1}}", "{tmq: {brokers: tcp://h:2}}"
    bridges = [f"on: {on}, join: [bus: {bus}, {one}]" for on, bus, one in zip("ab", "pq", sides, strict=True)]
    assert errors(text(*bridges)) == []
    both = "on: a, join: [uart: /dev/x, tmq: {brokers: ['tcp://h:1', 'tcp://h:2']}]"
    assert len(errors(text(*bridges, both))) == 1


def test_a_segment_joins_networks_and_does_not_part_them() -> None:
    one, other = "{tmq: {brokers: tcp://h:1}%s}", "{tmq: {brokers: tcp://h:%s}%s}"
    bridges = f"on: a, join: [bus: p, {one}]", f"on: b, join: [bus: q, {other}]"
    net = ", segment: net"
    assert errors(text(bridges[0] % net, bridges[1] % (2, ""))) == []
    assert len(errors(text(bridges[0] % net, bridges[1] % (2, net)))) == 1
    assert len(errors(text(bridges[0] % net, bridges[1] % (1, ", segment: other")))) == 1


def test_a_failover_group_on_brokers_is_no_ring_and_has_a_note() -> None:
    for tmq in ("{}", "{brokers: {a: main, b: tcp://h:1}}"):
        bridge = f"on: [a, b], join: [bus: {{a: p, b: q}}, tmq: {tmq}]"
        found = [finding for finding in check(loads(text(bridge))) if "tmq" in finding.text]
        assert [(one.level, one.path) for one in found] == [("note", "bridges.x.join[1]")]
        assert "carries no envelopes: a standby knows frames there by content and count" in found[0].text
    grouped = "on: %s, group: g, join: [bus: %s, tmq: {}]"
    assert errors(text(grouped % ("a", "p"), grouped % ("b", "q"))) == []
    assert len(errors(text(grouped % ("a", "p"), grouped.replace("group: g, ", "") % ("b", "q")))) == 1


def test_candidates_need_a_broker_that_does_not_die_with_another_one() -> None:
    bridge = "on: [a, b], join: [bus: {a: p, b: q}, tmq: %s]"

    def found(tmq: str, brokers: str = BROKERS) -> list[str]:
        return [one for one in warnings(text(bridge % tmq, brokers=brokers)) if "broker" in one]

    lost = "when a dies, b has no broker here, and cannot stand in; name one elsewhere too"
    assert found("{brokers: main}") == [f"main on a: {lost}"]
    assert found("{}", BROKERS.replace("on: b", "on: a")) == [f"main, spare on a: {lost}"]
    for fine in (
        "{}",
        "{brokers: {a: main, b: spare}}",
        "{brokers: tcp://h:1}",
        "{brokers: [main, 'tcp://h:1']}",
    ):
        assert found(fine) == []
    third = PAIR.replace("gateways: {", "gateways: {c: {address: 10.0.0.3}, ")
    assert [
        one
        for one in warnings(
            text(
                bridge % "{}", brokers=BROKERS.replace("on: a", "on: c").replace("on: b", "on: c"), head=third
            )
        )
        if "broker" in one
    ] == []


def test_bridges_on_one_network_that_are_no_ring_are_no_trouble() -> None:
    apart = "on: %s, join: [uart: /dev/x, tmq: {}]"
    assert check(loads(text(apart % "a", apart % "b"))) == []


def test_one_network_has_one_name_in_captures() -> None:
    topology = loads(text(BRIDGES[0] % "{brokers: main}", BRIDGES[1] % "{brokers: tcp://10.0.0.1:9942}"))
    assert {joint.wire for joint in wired(topology).joints if joint.side.medium} == {"tmq main"}


# Pictures


def test_show_names_brokers_and_patterns_in_few_words() -> None:
    bridge = "on: a, join: [tmq: %s, uart: /dev/x]"

    def shown(tmq: str) -> str:
        lines = show(loads(text(bridge % tmq))).split("\n")
        return next(line.partition("─ ")[2] for line in lines if "─ tmq" in line)

    assert shown("{}") == "tmq all brokers"
    assert shown("{brokers: [spare, tcp://h:1]}") == "tmq spare,h:1"
    assert shown("{subscribe: fridge/temp, publish: []}") == (
        "tmq all brokers  subscribe fridge/temp  publish nothing"
    )
    assert (
        shown("{publish: [a/x, b/x, c/x, d/x, e/x]}") == "tmq all brokers  publish a/x, b/x, c/x and 2 more"
    )


def test_a_mermaid_drawing_joins_bridges_to_a_network_and_that_to_its_brokers() -> None:
    tmq = "{brokers: [main, 'tcp://h:1'], subscribe: fridge, publish: alert}"
    lines = show(loads(text(BRIDGES[0] % tmq, BRIDGES[1] % "{brokers: main}")), "mermaid").split("\n")
    nodes = {line.strip().partition("[")[2]: line.split("[")[0].strip() for line in lines if "[" in line}
    broker, network = nodes['"broker main"]'], nodes['/"tmq main,h:1"/]']
    assert f"  {network} --- {broker}" in lines
    assert lines.count(f"  {network} --- {broker}") == 1
    (named,) = [line for line in lines if line.endswith(f" {network}") and "subscribe" in line]
    assert '---|"subscribe fridge; publish alert"|' in named
    assert len([line for line in lines if line.endswith(f" --- {network}")]) == 1
