"""`check` refuses what a device says and hears again, by whichever way; and knows its buses and patterns."""

import pytest

pytest.importorskip("lark", reason="the extra syndication is not installed")

from tests.topologies.support import GATEWAY, errors, findings
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.names import known
from topologies.picture.show import show

BUSES = """buses:
  hall: {on: gw, listen: "tcp://127.0.0.1:25001"}
  yard: {on: gw}
  far: {on: gw, dial: "tcp://127.0.0.1:25001"}
"""
BROKER = 'on: gw, syndication: "tcp://127.0.0.1:4444"'
OTHER = 'on: gw, syndication: "tcp://127.0.0.1:4445"'


def rules(heard: str, said: str, at: tuple[str, str] = ("hall", "hall")) -> str:
    """Return the rules of a broker: of producers and of queries, as `bus pattern`."""
    return (
        f"producers: [{{bus: {at[0]}, pattern: {heard}}}], "
        f"queries: [{{query: has Unit, bus: {at[1]}, pattern: {said}}}]"
    )


def plant(*brokers: str, more: str = "") -> str:
    listed = "".join(
        f"  d{number}: {{{(BROKER, OTHER)[number]}, {one}}}\n" for number, one in enumerate(brokers)
    )
    return f"{GATEWAY}{BUSES}{more}devices:\n{listed}"


def bridge(*sides: str, settings: str = "") -> str:
    return f"bridges: {{b: {{on: gw, {settings} join: [{', '.join(sides)}]}}}}\n"


@pytest.mark.parametrize("heard", ["found", "/", "found/heat", "found/heat/7"])
def test_what_is_said_under_a_prefix_that_is_heard_comes_back(heard: str) -> None:
    (text,) = errors(plant(rules(heard, "found/heat")))
    assert text.startswith("found/heat on bus hall comes back: device d0 hears")
    (finding,) = check(loads(plant(rules(heard, "found/heat"))))
    assert (finding.path, finding.line) == ("devices.d0.queries[0]", 8)


@pytest.mark.parametrize("heard", ["sensor", "found/cold", "found2"])
def test_what_is_said_under_another_pattern_does_not(heard: str) -> None:
    assert errors(plant(rules(heard, "found/heat"))) == []


def test_it_comes_back_over_buses_that_are_joined() -> None:
    apart = rules("found", "found", ("hall", "yard"))
    assert errors(plant(apart)) == []
    assert len(errors(plant(rules("found", "found", ("hall", "far"))))) == 1
    assert len(errors(plant(apart, more=bridge("bus: hall", "bus: yard")))) == 1


def test_it_comes_back_over_trunks_gateways_and_wires() -> None:
    text = """name: t
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}}
buses:
  hall: {on: a, listen: {url: "tcp://0.0.0.0:5", trunk: true}}
  yard: {on: b, listen: "tcp://0.0.0.0:6", trunks: hall}
bridges:
  x: {on: a, join: [{bus: hall}, {can: can0}]}
  y: {on: b, join: [{bus: yard}, {can: can1}]}
devices:
  d:
    {on: a, syndication: "tcp://0.0.0.0:7", producers: [{bus: hall, pattern: x}],
    queries: [{query: "", bus: hall, pattern: y}]}
  e:
    {on: b, syndication: "tcp://0.0.0.0:7", producers: [{bus: yard, pattern: y}],
    queries: [{query: "", bus: yard, pattern: x}]}
"""
    around = "goes round"
    cut = text.replace(", trunks: hall", "")
    one_wire = cut.replace("can: can0", "can: can0, segment: w").replace("can: can1", "can: can1, segment: w")
    counts = [sum(around in one for one in errors(one)) for one in (text, cut, one_wire)]
    assert counts == [2, 0, 2]


@pytest.mark.parametrize(
    ("sides", "settings", "comes"),
    [
        (("{bus: hall}", "{bus: yard, pattern: motor}"), "", False),
        (("{bus: hall}", "{bus: yard, pattern: found/heat/x}"), "", True),
        (("{bus: hall}", "{bus: yard, allow: {in: [found]}}"), "", True),
        (("{bus: hall}", "{bus: yard, allow: {in: [motor], out: [found]}}"), "", False),
        (("{bus: hall, deny: {out: [found]}}", "{bus: yard}"), "", False),
        (("{bus: hall, deny: {in: [found]}}", "{bus: yard}"), "", True),
        (("{bus: hall, deny: [found/heat/x]}", "{bus: yard}"), "", True),
        (("{bus: hall}", "{bus: yard}"), "pattern: motor,", False),
    ],
)
def test_filters_of_a_bridge_keep_it_apart(sides: tuple[str, str], settings: str, comes: bool) -> None:
    text = plant(rules("found", "found/heat", ("hall", "yard")), more=bridge(*sides, settings=settings))
    assert bool(errors(text)) == comes


def test_what_a_longer_rule_would_hear_is_kept_apart_by_a_longer_filter() -> None:
    sides = ("{bus: hall}", "{bus: yard, deny: [found/heat]}")
    text = plant(rules("found/heat/7", "found", ("hall", "yard")), more=bridge(*sides))
    assert errors(text) == []
    assert len(errors(text.replace("found/heat/7", "found/cold"))) == 1


def test_it_goes_round_by_two_brokers_and_the_clients_of_tmq_brokers() -> None:
    chain = (rules("a", "b"), "producers: [{bus: hall, pattern: b}]")
    assert errors(plant(*chain)) == []
    ring = errors(plant(rules("a", "b"), rules("b", "a")))
    assert [text.partition(":")[0] for text in ring] == [
        "b on bus hall goes round",
        "a on bus hall goes round",
    ]
    tmq = "{{tmq: {{brokers: m{0}, subscribe: found, publish: found}}}}"
    sides = [f"[{{bus: {bus}}}, {tmq.format(number)}]" for number, bus in enumerate(("hall", "yard"))]
    more = (
        "brokers: {m0: {on: gw, listen: 'tcp://127.0.0.1:9'}, m1: {on: gw, listen: 'tcp://127.0.0.1:10'}}\n"
    )
    more += f"bridges: {{b: {{on: gw, join: {sides[0]}}}, c: {{on: gw, join: {sides[1]}}}}}\n"
    assert len(errors(plant(rules("found", "found", ("hall", "yard")), more=more))) == 1


def test_show_and_names_know_its_rules() -> None:
    topology = loads(plant(rules("sensor/temp", "found/heat", ("hall", "yard"))))
    assert "syndication broker on bus hall, bus yard" in show(topology)
    assert {"sensor", "temp", "found", "heat"} <= {*known(topology)}


@pytest.mark.parametrize(
    ("rule", "words", "column"),
    [
        ("producers: [{bus: cellar, pattern: a}]", 'no bus "cellar"', 71),
        ("producers: [{bus: hall, pattern: a, codec: struct}]", "codec: struct has a format", 65),
        (
            "producers: [{bus: hall, pattern: a, metadata: {Room: }}]",
            "expected true or false or a whole number",
            0,
        ),
        ("producers: [{bus: hall, pattern: a, metadata: {Room: [[1]]}}]", "found a list", 0),
        ("producers: [{bus: hall, pattern: a, metadata: {When: 2026-01-01}}]", "put it in quotes", 0),
        ("producers: [{bus: hall, pattern: a}, {bus: hall, pattern: [a]}]", "two rules of producers", 0),
        ("queries: [{query: Room < 4, bus: hall, pattern: a}]", "query: character 6: expected", 0),
        ("queries: [{bus: hall, pattern: a}]", '"query" is missing', 0),
    ],
)
def test_a_wrong_rule_is_found_with_its_place(rule: str, words: str, column: int) -> None:
    (found,) = findings(plant(rule))
    assert words in found.text
    assert found.line == 8
    assert not column or found.column == column


def test_metadata_are_scalars_and_lists_of_them() -> None:
    text = '{Unit: C, Room: "410", Floor: 4, Height: 2.5, Hot: true, Tags: [zone, 1], None: []}'
    topology = loads(plant(f"producers: [{{bus: hall, pattern: a, metadata: {text}}}]"))
    (rule,) = topology.devices["d0"].producers  # type: ignore[attr-defined]
    assert rule.metadata == {
        "Unit": "C",
        "Room": "410",
        "Floor": 4,
        "Height": 2.5,
        "Hot": True,
        "Tags": ("zone", 1),
        "None": (),
    }
    assert (type(rule.metadata["Hot"]), type(rule.metadata["Floor"])) == (bool, int)
