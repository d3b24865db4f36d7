"""Wires that end within one process or machine: `check` says so, and the commands that open one do."""

import pytest

from appliance.probe.endpoint import parse_endpoint, say_confined
from bridges.media.can.medium import Can
from topologies.checks.checker import check
from topologies.loading.loader import loads

FILE = """\
name: t
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}, c: {address: 127.0.0.1, node: 3},
  d: {address: 127.0.0.1, node: 4}}
buses:
  bus-a: {on: a, listen: {url: "tcp://10.0.0.1:1", trunk: true}}
  bus-b: {on: b, listen: {url: "tcp://10.0.0.2:1", trunk: true}}
  bus-c: {on: c, listen: {url: "tcp://127.0.0.1:1", trunk: true}}
  bus-d: {on: d, listen: {url: "tcp://127.0.0.1:2", trunk: true}}
bridges:
"""
VIRTUAL = "can: {channel: v, interface: virtual}"
LO = "multicast: {group: 239.1.1.1, port: 9, interface: %s}"
NEAR = "multicast: {group: 239.1.1.1, port: 9, interface: eth0, hops: 0}"
UDP_CAN = "can: {channel: 239.1.1.1, interface: udp_multicast, options: {hop_limit: %s}}"
PROCESS, MACHINE = "nobody outside this process hears it", "nobody outside this machine hears it"


def found(*sides: tuple[str, str]) -> list[tuple[str, str]]:
    """Return level and text of what is said of bridges with these sides, each on a gateway."""
    lines = [
        f"  {chr(ord('p') + n)}: {{on: {on}, join: [bus: bus-{on}, {{{side}, trunk: true}}]}}\n"
        for n, (on, side) in enumerate(sides)
    ]
    told = [(one.level, one.text) for one in check(loads(FILE + "".join(lines))) if "hears it" in one.text]
    return [(level, MACHINE if MACHINE in text else PROCESS) for level, text in told]


@pytest.mark.parametrize("side", [VIRTUAL, "can: {channel: 'loop://', interface: slcan}"])
def test_a_wire_of_one_process_is_a_warning_unless_another_side_of_the_gateway_is_on_it(side: str) -> None:
    assert found(("a", side)) == [("warning", PROCESS)]
    assert found(("a", side), ("b", side)) == [("warning", PROCESS)] * 2
    assert found(("a", side), ("a", side.replace("v,", "v, node: 9,"))) == [("note", PROCESS)] * 2


@pytest.mark.parametrize("interface", ["lo", "127.0.0.1"])
def test_a_wire_of_one_machine_is_a_note_and_a_warning_if_gateways_of_two_are_on_it(interface: str) -> None:
    assert found(("a", LO % interface)) == [("note", MACHINE)]
    assert found(("c", LO % interface), ("d", LO % interface)) == [("note", MACHINE)] * 2
    assert found(("a", LO % interface), ("b", LO % "eth0")) == [("warning", MACHINE)]


@pytest.mark.parametrize(("near", "far"), [(NEAR, NEAR.replace("0}", "1}")), (UDP_CAN % 0, UDP_CAN % 1)])
def test_a_wire_of_one_machine_that_says_so_itself_is_told_only_where_it_cuts(near: str, far: str) -> None:
    assert found(("a", near)) == found(("a", far), ("b", far)) == []
    assert found(("a", near), ("b", near)) == [("warning", MACHINE)] * 2


def test_an_address_of_a_bus_that_only_its_process_reaches_is_a_note() -> None:
    text = "name: t\ngateways: {gw: }\nbuses: {p: {on: gw, listen: ['inproc://x', 'tcp://127.0.0.1:1']}}"
    assert [(one.level, PROCESS in one.text) for one in check(loads(text))] == [("note", True)]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("can:v?node=2&interface=virtual", PROCESS),
        ("inproc://x", PROCESS),
        ("multicast:239.1.1.1:9?interface=lo", MACHINE),
        ("multicast:239.1.1.1:9?interface=lo&hops=0", ""),
        ("multicast:239.1.1.1:9?interface=eth0", ""),
        ("can:can0?node=2", ""),
        ("tcp://127.0.0.1:1", ""),
    ],
)
def test_a_command_says_what_its_endpoint_reaches(
    word: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say_confined(parse_endpoint(word))
    err = capsys.readouterr().err
    assert (told in err) if told else err == ""


def test_every_interface_of_python_can_that_reaches_its_own_process_only_is_known() -> None:
    """The others drive adapters, or talk to other machines."""
    from can import VALID_INTERFACES

    made = {name: Can(channel="x", interface=name).confined for name in VALID_INTERFACES}
    assert {name for name, confined in made.items() if confined is not None} == {"virtual"}
