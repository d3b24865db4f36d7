"""What is read is what an editor shows: where lines end, and keys that are there twice in two spellings."""

import pytest

from topologies.findings import InvalidTopology
from topologies.loading.loader import loads

FILE = """\
name: plant # %s
gateways: {gw: {address: 127.0.0.1, node: 9}}
buses: {main: {on: gw, listen: "tcp://127.0.0.1:7101"}}
bridges:
  field:
    on: gw
    join:
      - {bus: main%s}
      - %s
"""
UART = "{uart: {port: /dev/ttyUSB0}, protocol: %s}"
CAN = "{can: {channel: can0, interface: socketcan%s}%s}"
REGISTERS = "{modbus: {registers: [{kind: input, register: 5, pattern: state, choices: {%s: x, %s: y}}]}}"
TWICE = {
    "choices": ("", UART % REGISTERS, "1", "0x1"),
    "lines": ("", UART % "{lines: {send: {%s: x, %s: y}}}", "a/b", "'\"a\"/b'"),
    "jsonl": ("", UART % "{jsonl: {send: {%s: x, %s: y}}}", "7/b", "0x7/b"),
    "subjects": ("", CAN % (", subjects: {%s: 4100, %s: 4101}", ""), "a/b", "'\"a\"/b'"),
    "ids": ("", CAN % ("", ", protocol: {raw: {ids: {%s: x, %s: y}}}"), "0x10", "16"),
    "rename": (", rename: {%s: x, %s: y}", CAN % ("", ""), "a/b", "'\"a\"/b'"),
}


def fault(comment: str = "", bus: str = "", side: str = UART % "lines") -> str:
    try:
        loads(FILE % (comment, bus, side))
    except InvalidTopology as error:
        return str(error)
    return ""


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_no_comment_ends_where_no_editor_shows_it(sign: str) -> None:
    assert fault("as before") == ""
    name = f"U+{ord(sign):04X}"
    assert fault(f"as before{sign}brokers: {{}}").startswith(
        f"<text>:1:24: error: {name} ends a line in YAML"
    )


@pytest.mark.parametrize("where", TWICE)
def test_a_key_is_there_once_however_it_is_written(where: str) -> None:
    bus, side, *keys = TWICE[where]
    for first, second, good in ((*keys, False), (keys[0], "other/1", True), (*keys[::-1], False)):
        second = "17" if good and where in ("choices", "ids") else second
        made = [text % (first, second) if "%s" in text else text for text in (bus, side)]
        assert (fault("", *made) == "") is good, fault("", *made)


@pytest.mark.parametrize("key", ["0b11", "0o10", "1_0", "010", " 5", "1.0"])
def test_a_choice_is_of_a_plain_number(key: str) -> None:
    assert "is no integer" in fault("", "", UART % REGISTERS % (f'"{key}"', "7"))
