"""Values by gateway: each gateway has plain ones, and every mistake is found once, with its place."""

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
import yaml
from yaml.nodes import MappingNode

from bridges.media.can.medium import Can
from bridges.media.uart.medium import Uart
from bus.schema import Single
from tests.topologies.support import findings, said
from topologies.loading.loader import loads
from topologies.loading.mappings import is_choice, wrong_keys
from topologies.model import Filter, Listen, Shed, Side

TEXT = """\
name: t
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}, c: }
brokers: {m: {on: a, listen: 'tcp://0.0.0.0:9942'}}
buses: {one: {on: a}, two: {on: b}, more: {on: c}}
bridges:
  x:
    join:
      - bus: %s
      - %s
    on: [a, b]
"""


def paired(bus: str = "one", side: str = "{can: can0}") -> str:
    return TEXT % (bus, side)


def sides(side: str) -> list[Side]:
    """Return a side as it is on each of the two gateways."""
    bridge = loads(paired(side=side)).bridges["x"]
    return [bridge.at(gateway)[1] for gateway in "ab"]


def test_a_bus_by_gateway_is_a_plain_one_on_each() -> None:
    bridge = loads(paired("{a: one, b: two}")).bridges["x"]
    assert [bridge.at(gateway)[0].bus for gateway in "ab"] == ["one", "two"]
    assert bridge.at("a")[1] is bridge.at("b")[1]


@pytest.mark.parametrize(
    ("side", "media"),
    [
        (
            "can: {channel: {a: can0, b: 1}, fd: true}",
            [Can(channel="can0", fd=True), Can(channel=1, fd=True)],
        ),
        ("can: {a: c, b: {channel: d, fd: true}}", [Can(channel="c"), Can(channel="d", fd=True)]),
        ("{a: {can: c}, b: {uart: /dev/x}}", [Can(channel="c"), Uart(port="/dev/x")]),
        (
            "can: {channel: c, interface: kvaser, options: {a: {k: 1}, b: {k: 2}}}",
            [
                Can(channel="c", interface="kvaser", options={"k": 1}),
                Can(channel="c", interface="kvaser", options={"k": 2}),
            ],
        ),
        (
            "can: {channel: c, interface: kvaser, options: {a: 1, b: 2}}",
            2 * [Can(channel="c", interface="kvaser", options={"a": 1, "b": 2})],
        ),
    ],
)
def test_a_medium_or_any_value_in_it_by_gateway(side: str, media: list[Can | Uart]) -> None:
    assert [one.medium for one in sides(side)] == media


@pytest.mark.parametrize(
    ("shed", "made"),
    [
        (
            "{a: oldest, b: {policy: newest, age_ms: 5}}",
            [Shed(policy="oldest"), Shed(policy="newest", age_ms=5)],
        ),
        ("{policy: {a: oldest, b: newest}}", [Shed(policy="oldest"), Shed(policy="newest")]),
        ("{a: oldest, b: }", [Shed(policy="oldest"), None]),
    ],
)
def test_a_policy_by_gateway(shed: str, made: list[Shed | None]) -> None:
    assert [side.shed for side in sides(f"{{can: c, shed: {shed}}}")] == made


def test_segments_trunks_and_patterns_by_gateway() -> None:
    one, other = sides(
        "{can: c, segment: {a: l, b: r}, trunk: {a: true, b: no}, pattern: {a: m/s, b: [t, 1]}}"
    )
    assert (one.segment, one.trunk, one.pattern) == ("l", True, ("m", "s"))
    assert (other.segment, other.trunk, other.pattern) == ("r", False, ("t", 1))
    one, other = sides("{can: c, allow: {a: m/s, b: [m, t]}, deny: {in: {a: u, b: v}}}")
    assert (one.allow, one.deny) == (Filter(both=(("m", "s"),)), Filter(inward=(("u",),)))
    assert (other.allow, other.deny) == (Filter(both=(("m",), ("t",))), Filter(inward=(("v",),)))


def test_where_a_mapping_is_expected_its_keys_come_before_gateways_of_their_name() -> None:
    text = TEXT.replace("a:", "fd:").replace("[a,", "[fd,").replace("on: a", "on: fd")
    assert 'unknown key "b": a gateway' in said(text % ("one", "can: {fd: {channel: c}, b: {channel: d}}"))
    bridge = loads(text % ("one", "can: {channel: {fd: c, b: d}}")).bridges["x"]
    assert bridge.at("fd")[1].medium == Can(channel="c")


@pytest.mark.parametrize(
    ("bus", "side", "words"),
    [
        (
            "{a: one}",
            "can: c",
            "t.yaml:8:14: error: bridges.x.join[0].bus: no value for b: it runs",
        ),
        ("{a: one, b: two, d: two}", "can: c", '8:31: error: bridges.x.join[0].bus: no gateway "d"; known'),
        ("{a: one, b: two, c: more}", "can: c", "join[0].bus: it does not run on c, only on a, b: leave"),
        ("{a: one, b: twoo}", "can: c", 'join[0].bus.b: no bus "twoo"; did you mean "two"?'),
        ("{a: one, b: {a: one, b: two}}", "can: c", "join[0].bus.b: expected text, found a mapping"),
        ("{x: one, y: two}", "can: c", "found a mapping; a value by gateway has the keys a, b"),
        ("one", "can: {channel: c, b: d}", 'unknown key "b": a gateway; values by gateway have no other'),
        ("one", "can: {channel: c, fd: {a: true, b: no}, data_bitrate: 1000000}", "on b: data_bitrate needs"),
        ("one", "can: {channel: c, node: {a: 1, b: 200}}", "node.b: 200 is out of range"),
        ("one", "{can: c, shed: {a: oldest, b: {polcy: newest}}}", 'shed.b.polcy: unknown key "polcy"'),
        ("one", "{can: c, shed: {aa: oldest, b: newest}}", 'no gateway "aa"; did you mean "a"?'),
    ],
)
def test_what_is_wrong_is_said(bus: str, side: str, words: str) -> None:
    assert words in said(paired(bus, side))


@pytest.mark.parametrize(
    ("bus", "side"),
    [("{a: one, b: two}", "can: {channel: c, fd: 5}"), ("{a: one}", "can: c"), ("{a: one, b: x}", "can: c")],
)
def test_what_is_wrong_is_said_once(bus: str, side: str) -> None:
    assert len(findings(paired(bus, side))) == 1


def test_wrong_gateways_of_the_bridge_raise_nothing_but_findings() -> None:
    for text in ("on: [a, z]", "on: z", "on: {a: 1}", "onn: a", "on: []"):
        assert findings(paired("{a: one, b: two}", "can: {a: {channel: c}}").replace("on: [a, b]", text))


def mapping(text: str) -> MappingNode:
    node = yaml.compose(text)
    assert isinstance(node, MappingNode)
    return node


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("{}", False),
        ("{a: {k: 1}}", True),
        ("{a: {k: 1}, b: {k: 2}}", True),
        ("{a: {k: 1}, c: {k: 2}}", False),
        ("{a: {k: 1}, [b]: {k: 2}}", False),
        ("{a: {k: 1}, b: 2}", False),
    ],
)
def test_where_any_keys_are_allowed_a_choice_has_gateways_only_with_a_mapping_for_each(
    text: str, choice: bool
) -> None:
    assert is_choice(mapping(text), Mapping[str, Any], ["a", "b"]) is choice


@pytest.mark.parametrize(
    ("annotation", "choice"),
    [
        (Listen, False),
        (Annotated[tuple[Listen, ...], Single()], False),
        (Annotated[Annotated[tuple[Listen, ...], Single()] | None, "words"], False),
        (Annotated[Annotated[tuple[Listen, ...], "words"] | None, Single()], False),
        (tuple[Listen, ...], True),
        (str, True),
    ],
)
def test_a_key_of_the_only_item_of_a_list_comes_before_a_gateway_of_its_name(
    annotation: Any, choice: bool
) -> None:
    """A list that needs its brackets is no mapping, so there the key can only be a gateway."""
    assert is_choice(mapping("{url: x}"), annotation, ["url"]) is choice


@pytest.mark.parametrize(
    ("on", "known"), [(["a", "b"], "; known here: a, b"), ([], "; known here: a, b, gw")]
)
def test_an_unknown_gateway_is_told_with_those_that_may_stand_there(on: list[str], known: str) -> None:
    ((_, text),) = wrong_keys(mapping("x" * 100 + ": 1"), ["a", "b", "gw"], on)
    assert text == f'no gateway "{"x" * 64}"{known}'
