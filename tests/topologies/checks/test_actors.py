"""`check` tells who can act on a device, by whichever bus, bridge, name or broker; and that nobody can."""

import pytest

from bridges.protocols import PROTOCOLS
from tests.topologies.support import errors, said
from topologies.checks.actors import find_actors
from topologies.loading.loader import loads
from topologies.wiring.segments import wired

TOP = """name: t
gateways: {gw: {}}
brokers: {main: {on: gw, listen: "tcp://127.0.0.1:9942"}}
buses:
  shop: {on: gw, listen: %s}
  office: {on: gw, listen: "tcp://127.0.0.1:7002"}
bridges:
  x: {on: gw, join: [{bus: shop%s}, {uart: /dev/ttyS9, protocol: {lines: {%s}}}]}
"""
OPEN, LOCAL = '"tcp://0.0.0.0:7001"', '"tcp://127.0.0.1:7001"'
SEND = "receive: says, send: show"


def told(listen: str = LOCAL, side: str = "", lines: str = SEND, more: str = "") -> list[str]:
    found = find_actors(wired(loads(TOP % (listen, side, lines) + more)))
    return [f"{one.level}: {one.text}" for one in found]


def test_each_pattern_is_told_with_where_it_can_come_from() -> None:
    assert told() == ["note: show acts on uart /dev/ttyS9 115200, and can come from tcp://127.0.0.1:7001"]


def test_several_patterns_act() -> None:
    (text,) = told(lines="receive: says, send: {show: x, say: y}")
    assert text.startswith("note: show, say act on uart")


@pytest.mark.parametrize(("count", "begins"), [(64, "show/p0/x, show/p1/x, "), (65, "show acts on uart")])
def test_of_very_many_patterns_is_told_what_they_begin_with(count: int, begins: str) -> None:
    pairs = ", ".join(f"show/p{number}/x: x" for number in range(count))
    (text,) = told(lines=f"receive: says, send: {{{pairs}}}")
    assert text.startswith(f"note: {begins}")


def test_a_side_without_send_is_acted_on_by_nobody() -> None:
    assert told(lines="receive: says") == []
    assert told(side=", deny: {in: show}")[0].endswith("can come from nothing in this file")


def test_an_address_that_is_open_to_everybody_is_a_warning() -> None:
    note, warning = told(OPEN)
    assert note.endswith("can come from tcp://0.0.0.0:7001")
    assert warning.startswith("warning: whoever reaches tcp://0.0.0.0:7001 can send show, which acts on uart")


@pytest.mark.parametrize(
    ("peers", "source", "is_open"),
    [
        ("[{address: 10.0.0.0/24, send: [show]}]", "tcp://0.0.0.0:7001 (10.0.0.0/24)", False),
        ("[{address: 10.0.0.0/24, send: [else]}]", "nothing in this file", False),
        ("[{send: [show/now]}]", "tcp://0.0.0.0:7001 (all)", True),
        ("[{send: []}]", "nothing in this file", False),
    ],
)
def test_the_list_of_peers_says_who_may(peers: str, source: str, is_open: bool) -> None:
    found = told(f"[{{url: {OPEN}, peers: {peers}}}]")
    assert found[0].endswith(f"can come from {source}")
    assert len(found) == 1 + is_open


@pytest.mark.parametrize(
    ("sides", "source"),
    [
        ("{bus: shop}, {bus: office}", "tcp://127.0.0.1:7002"),
        ("{bus: shop, strip: show}, {bus: office}", "tcp://127.0.0.1:7002"),
        ("{bus: shop, prefix: show}, {bus: office}", "tcp://127.0.0.1:7002"),
        ("{bus: shop, strip: 1}, {bus: office}", "nothing more"),
        ("{bus: shop}, {bus: office, rename: {other: show}}", "tcp://127.0.0.1:7002"),
        ("{bus: shop}, {bus: office, rename: {show: other}}", "nothing more"),
        ("{bus: shop}, {bus: office, prefix: hall}", "nothing more"),
        ("{bus: shop}, {tmq: {publish: []}}", "tcp://127.0.0.1:9942 of broker main, tmq all brokers"),
        ("{bus: shop}, {tmq: {subscribe: []}}", "nothing more"),
        (
            "{bus: shop}, {multicast: {group: 239.9.42.1, port: 9942, interface: lo}}",
            "multicast 239.9.42.1:9942 on lo",
        ),
        (
            "{bus: shop}, {multicast: {group: 239.9.42.1, port: 9942, interface: lo}, deny: {in: show}}",
            "nothing more",
        ),
    ],
)
def test_other_bridges_filters_and_names_are_followed(sides: str, source: str) -> None:
    (text,) = told(more=f"  y: {{on: gw, join: [{sides}]}}\n")
    found = text.rpartition(" can come from ")[2].split(", ")
    more = [] if source == "nothing more" else source.split(", ")
    assert sorted(found) == sorted(["tcp://127.0.0.1:7001", *more])


def test_very_many_patterns_are_one_line() -> None:
    raw = 'protocol: {raw: {root: car, send: ["0x0-0x3ff"], receive: [0x7ff]}}'
    side = f"{{can: {{channel: can0, bitrate: 500000}}, {raw}}}"
    text = TOP % (LOCAL, "", SEND) + f"  y: {{on: gw, join: [{{bus: office}}, {side}]}}\n"
    found = find_actors(wired(loads(text)))
    assert ["car acts on can" in one.text for one in found] == [False, True]


KEYS = [key for key in PROTOCOLS.ours() if key != "tmq"]
NEEDED = {
    "modbus": "{registers: [{register: 1, pattern: p}]}",
    "queries": "{queries: [{ask: '?', pattern: p}]}",
    "dbc": "{file: none.dbc}",
    "registers": "{registers: [{target: 0x48, register: 1, type: u8, pattern: p}]}",
}
DEVICES = {
    "bytes": "uart: /dev/ttyS0",
    "frames": "can: {channel: can0, bitrate: 500000}",
    "registers": "i2c: {bus: 1}",
}


def speaking(key: str, side: str) -> str:
    return (
        "name: t\ngateways: {gw: {}}\nbuses: {a: {on: gw}}\n"
        "brokers: {m: {on: gw, listen: 'tcp://127.0.0.1:2'}}\n"
        f"bridges: {{x: {{on: gw, join: [{{bus: a}}, "
        f"{{{side}, protocol: {{{key}: {NEEDED.get(key, '{}')}}}}}]}}}}"
    )


@pytest.mark.parametrize("key", KEYS)
def test_no_protocol_lets_anything_out_unless_it_is_told(key: str) -> None:
    kind = PROTOCOLS.find(key)
    assert kind is not None
    device = next((DEVICES[items] for items in kind.items if items in DEVICES), None)
    if device is None:
        pytest.skip(f"no medium of this test carries {kind.items}")
    topology = loads(speaking(key, device))
    assert topology.bridges["x"].at("gw")[1].denied.outward == ((),)
    assert list(find_actors(wired(topology))) == []


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("side", ["bus: a", "tmq: {}", 'url: "tcp://127.0.0.1:1"'])
def test_what_carries_no_items_speaks_no_protocol(key: str, side: str) -> None:
    assert f"does not carry the protocol {key}: leave protocol out" in said(speaking(key, side))


def test_a_trunk_speaks_no_protocol() -> None:
    text = TOP % (LOCAL, "", SEND)
    assert "cannot be a trunk" in said(text.replace("/dev/ttyS9,", "/dev/ttyS9, trunk: true,"))
    assert errors(text) == []
