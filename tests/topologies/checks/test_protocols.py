"""The protocols of sides: one that asks on a line, and the faults of tables."""

from pathlib import Path

import pytest

from tests.bridges.protocols.dbc.dbc_support import CAR, written
from tests.topologies.support import errors
from topologies.checks.checker import check
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads

TOP = """
name: t
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2}, c: {address: 10.0.0.3}}
brokers: {lease: {on: c, listen: "tcp://10.0.0.3:7100"}}
buses: {main: {on: c, listen: ["tcp://10.0.0.3:7101"]}, second: {on: c, listen: ["tcp://10.0.0.3:7102"]}}
bridges:
"""
MODBUS = "protocol: {modbus: {registers: [{register: %d, pattern: %s}]}}"


def bridge(name: str, on: str, medium: str, bus: str = "main", more: str = "") -> str:
    table = MODBUS % (len(name), f"p/{name}")
    return f"  {name}: {{on: {on}, {more}join: [{{bus: {bus}}}, {{{medium}, {table}}}]}}\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp: {host: 10.0.0.9, port: 502}", "tcp: {host: 10.0.0.9, port: 502}"),
        ("uart: /dev/ttyS0, segment: pair", "uart: /dev/ttyS1, segment: pair"),
        ('uart: "socket://10.0.0.9:4001"', 'uart: "socket://10.0.0.9:4001"'),
    ],
)
def test_two_bridges_that_ask_on_one_line_are_refused_unless_they_are_one_group(one: str, other: str) -> None:
    text = TOP + bridge("first", "a", one) + bridge("second", "b", other, "second")
    found = [error for error in errors(text) if "asks the devices on" in error]
    assert len(found) == 1
    assert "bridge first (line 7)" in found[0]
    grouped = (
        TOP + bridge("first", "a", one, more="group: g, ") + bridge("second", "b", other, more="group: g, ")
    )
    assert [error for error in errors(grouped) if "asks the devices on" in error] == []
    alone = TOP + bridge("first", "[a, b]", one)
    assert [error for error in errors(alone) if "asks the devices on" in error] == []


ALONE = """
name: t
gateways: {a: {}}
buses: {main: {on: a}}
bridges:
  m:
    on: a
    join:
      - bus: main
      - tcp: {host: 10.0.0.9, port: 502}
        protocol:
          modbus:
            registers:
"""


def table(*rows: str) -> list[str]:
    return errors(ALONE + "".join(f"            - {{{row}}}\n" for row in rows))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            ("register: 0, type: f32, pattern: a", "register: 1, pattern: b"),
            "device 1, holding 1 is also in the value at device 1, holding 0-1",
        ),
        (("register: 0, pattern: a", "register: 9, pattern: a"), "the pattern a is that of another value"),
        (
            ("register: 0, pattern: a, write: true, min: 0, max: 1", "register: 9, pattern: a/set"),
            "the pattern a/set is that of another value",
        ),
    ],
)  # fmt: skip
def test_rows_that_cannot_stand_together_are_told_one_by_one(rows: tuple[str, ...], why: str) -> None:
    found = table(*rows)
    assert len(found) == 1
    assert why in found[0]


def test_the_bits_of_one_register_may_stand_together() -> None:
    assert table(*(f"register: 3, type: bool, bit: {n}, pattern: bit/{n}" for n in range(3))) == []


SPOKEN = """
name: t
gateways: {{a: {{}}}}
buses: {{main: {{on: a, listen: "tcp://127.0.0.1:25902"}}}}
bridges: {{m: {{on: a, join: [bus: main, {side}]}}}}
"""


def warned(side: str) -> list[str]:
    found = check(loads(SPOKEN.format(side=side)))
    return [finding.text for finding in found if finding.level == "warning"]


def test_patterns_that_leave_nothing_of_a_protocol_are_told() -> None:
    lines = "{{uart: /dev/ttyS1, protocol: {{lines: {{receive: a/b, send: c}}}}, {own}}}"
    assert warned(lines.format(own="allow: {in: [a], out: [c/d]}")) == []
    whole, *told = warned(lines.format(own="allow: {in: [x], out: [a]}"))
    assert whole.startswith("nothing crosses this bridge")
    assert [text.partition(":")[0] for text in told] == ["nothing enters here", "nothing leaves here"]
    assert told[0].endswith("the protocol has a/b, and this side lets only x pass")


def test_a_protocol_that_the_medium_does_not_carry_is_told_with_those_that_it_does() -> None:
    with pytest.raises(InvalidTopology, match="carry the protocol raw: use modbus, queries, lines"):
        loads(SPOKEN.format(side="{uart: /dev/ttyS1, protocol: raw}"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["register: 40001"], "it is register 0 of kind holding here"),
        (["register: 40101, type: f32", "register: 40003, write: true, min: 0, max: 9"], "register 100 of"),
        (["register: 30001, kind: input", "register: 40001"], "it is register 0 of kind input"),
        (["register: 30007"], "it is register 6 of kind input"),
        (["register: 10002, kind: discrete"], "it is register 1 of kind discrete"),
        (["register: 40001", "register: 7"], ""),
        (["register: 40000"], ""),
        (["register: 10001"], ""),
        (["register: 50001"], ""),
        (["register: 10001, kind: coil"], ""),
    ],
)
def test_numbers_that_all_look_like_those_of_a_manual_are_a_note(rows: list[str], words: str) -> None:
    table = "".join(f"              - {{{row}, pattern: p/{number}}}\n" for number, row in enumerate(rows))
    found = [(one.level, one.line, one.text) for one in check(loads(ALONE + table)) if "manual" in one.text]
    assert [(level, line) for level, line, _ in found] == ([("note", 14)] if words else [])
    assert all(words in text for _, _, text in found)


SHARED = """
name: t
gateways: {a: {address: 10.0.0.1, node: 1}, b: {address: 10.0.0.2, node: 2}, c: {address: 10.0.0.3}}
brokers: {lease: {on: c, listen: "tcp://10.0.0.3:7100"}}
buses: {main: {on: c, listen: {url: "tcp://10.0.0.3:7101", trunk: true}}}
bridges:
"""
HEARD, LOST = "at a takeover sends the rest", "what was under way is lost"
RAW = "can: can0, protocol: {raw: {receive: '0x0-0xff', send: '0x100-0x1ff'%s}}"


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (RAW % "", HEARD),
        (RAW % ", replay: false", LOST),
        ("tcp: {host: 10.0.0.9, port: 9}, segment: s, protocol: {lines: {receive: x, send: y}}", LOST),
        ("uart: /dev/ttyS0, segment: s, protocol: {modbus: {registers: [{register: 0, pattern: x}]}}", LOST),
    ],
)
def test_a_shared_wire_of_a_protocol_asks_for_no_trunk_and_says_what_holds(side: str, words: str) -> None:
    """A side with a protocol cannot be a trunk, so no advice says that it should be one."""
    together = SHARED + f"  x: {{on: [a, b], join: [{{bus: main, trunk: true}}, {{{side}}}]}}\n"
    found = [one for one in check(loads(together)) if "shared by a, b" in one.text]
    assert [(one.level, words in one.text) for one in found] == [("note", True)]
    apart = "".join(f"  {on}1: {{on: {on}, join: [{{bus: main, trunk: true}}, {{{side}}}]}}\n" for on in "ab")
    found = [one for one in check(loads(SHARED + apart)) if "exactly once" in one.text]
    assert [one.text for one in found if "without trunk" in one.text] == []


def test_unit_0_of_modbus_is_a_device_with_tcp_and_all_devices_on_a_line() -> None:
    modbus = "{{{medium}, protocol: {{modbus: {{registers: [{{device: 0, register: 0, pattern: a}}]}}}}}}"
    assert warned(modbus.format(medium="tcp: {host: 10.0.0.9, port: 502}")) == []
    with pytest.raises(InvalidTopology, match="device 0 means all devices of a line"):
        warned(modbus.format(medium="uart: /dev/ttyS1"))


@pytest.mark.parametrize(
    ("size", "more", "why"),
    [
        (8, "", ""),
        (12, "", "Command is a frame of CAN FD, and none is sent here: write fd: true"),
        (
            12,
            ", fd: true, mixed: classic",
            "Command is a frame of CAN FD, and none is sent here: write mixed: fd",
        ),
        (12, ", fd: true", ""),
    ],
)
def test_a_message_that_is_sent_fits_its_bus(tmp_path: Path, size: int, more: str, why: str) -> None:
    text = CAR.replace("Command: 4", f"Command: {size}")
    file = written(tmp_path, text)
    side = f"{{can: {{channel: can0{more}}}, protocol: {{dbc: {{file: {file}, root: c, send: Command}}}}}}"
    found = errors(TOP + f"  m: {{on: a, join: [{{bus: main}}, {side}]}}\n")
    assert [one for one in found if "CAN FD" in one] == ([why] if why else [])


@pytest.mark.parametrize("protocol", ["queries: {queries: [{ask: A, pattern: a}]}", "xbee: {root: a}"])
def test_a_device_that_is_asked_does_not_connect_by_itself(protocol: str) -> None:
    """`run` once found that out, and `check` did not."""
    text = "{{tcp: {{port: 7000, host: 127.0.0.1, mode: {mode}}}, protocol: {{{protocol}}}}}"
    with pytest.raises(InvalidTopology, match=r": dial (them|it), with mode: dial"):
        warned(text.format(mode="listen", protocol=protocol))
    warned(text.format(mode="dial", protocol=protocol))


@pytest.mark.parametrize(
    ("medium", "protocol", "words"),
    [
        ("can: {channel: can0, node: 7, subject: 9}", "raw", "leave node and subject out"),
        ("can: {channel: can0, subjects: {a: 8}}", "raw", "leave subjects out"),
        ("tcp: {host: 192.0.2.7, port: 3001, framing: cobs}", "lines", "leave framing out"),
    ],
)
def test_what_only_tmq_has_is_refused_beside_a_protocol(medium: str, protocol: str, words: str) -> None:
    with pytest.raises(InvalidTopology, match=words):
        loads(SPOKEN.format(side=f"{{{medium}, protocol: {protocol}}}"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("prefix: hall, rename: {gps/GP: nav}", ""),
        ("prefix: hall, rename: {gps: nav}, limits: [{pattern: hall/nav/GP, frames_per_s: 1}]", ""),
        ("strip: gps, rename: {GP: nav}, limits: [{pattern: nav, frames_per_s: 1}]", ""),
        ("strip: 1, rename: {GP: nav}", ""),
        ("rename: {panel/text: text}, limits: [{pattern: text, direction: out, frames_per_s: 1}]", ""),
        ("prefix: hall, rename: {hall/gps/GP: nav}", "rename: hall/gps/GP is no name on the wire"),
        ("rename: {nav: gps/GP}", "rename: nav is no name on the wire"),
        ("strip: pos, rename: {gps/GP: nav}", "rename: pos/gps/GP is no name on the wire"),
        ("prefix: hall, limits: [{pattern: gps, frames_per_s: 1}]", "limits: nothing of gps passes"),
        ("limits: [{pattern: panel, frames_per_s: 1}]", "limits: nothing of panel passes"),
    ],
)
def test_names_that_a_side_changes_or_limits_are_those_that_it_has(words: str, told: str) -> None:
    """With a prefix, a name of the bridge was written for one of the wire, and nothing was renamed."""
    side = "uart: /dev/ttyS0, protocol: {nmea: {root: gps, send: panel/text}}"
    text = f"{TOP}  g: {{on: a, join: [{{bus: main}}, {{{side}, {words}}}]}}\n"
    found = [one.text for one in check(loads(text)) if one.text.startswith(("rename", "limits"))]
    assert [one.startswith(told) for one in found] == ([True] if told else []), found
    assert not told or "rename" not in words or ("prefix comes" in found[0]) == ("prefix" in words)
