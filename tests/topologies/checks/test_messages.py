"""What cannot cross: messages that are no frames where a pattern is, and those that are too long."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main
from tests.topologies.support import GATEWAY, PAIR, warnings
from topologies.checks.checker import check
from topologies.checks.messages import find_frames_only
from topologies.loading.loader import loads
from topologies.picture.show import show

BUSES = """\
buses:
  one: {on: gw, listen: tcp://127.0.0.1:1}
  two: {on: gw, listen: tcp://127.0.0.1:2}
"""
BRIDGE = GATEWAY + BUSES + "bridges: {b: {on: gw, %sjoin: [%s]}}"
PATTERNED = BRIDGE % ("pattern: fridge, ", "bus: one, bus: two")


@pytest.mark.parametrize(
    ("pattern", "sides", "places"),
    [
        ("pattern: fridge, ", "bus: one, bus: two", ["bridges.b"]),
        ("", "{bus: one, pattern: fridge}, bus: two", ["bridges.b.join[0]"]),
        ("", "bus: one, {bus: two, allow: {out: [fridge]}}", ["bridges.b.join[1]"]),
        ("", "{url: tcp://127.0.0.1:9, allow: fridge}, bus: two", ["bridges.b.join[0]"]),
        ("", "bus: one, bus: two", []),
        ("", "bus: one, {bus: two, deny: fridge}", []),
        ("", "bus: one, {bus: two, allow: [[]]}", []),
        ("pattern: fridge, ", "{bus: one, opaque: fridge/x}, bus: two", ["bridges.b.join[1]"]),
        ("pattern: fridge, ", "{bus: one, opaque: fridge/x}, {bus: two, opaque: fridge/y}", []),
        ("", "{bus: one, opaque: fridge/x, allow: fridge}, bus: two", []),
        ("pattern: fridge, ", "bus: one, uart: /dev/x", []),  # a field medium carries frames only anyway
    ],
)
def test_a_note_says_where_only_frames_cross_between_buses(
    pattern: str, sides: str, places: list[str]
) -> None:
    topology = loads(BRIDGE % (pattern, sides), "t.yaml")
    found = list(find_frames_only(topology))
    assert [finding.path for finding in found] == places
    assert {finding.level for finding in found} <= {"note"}
    assert check(topology) == []


def test_show_says_it_too() -> None:
    assert "bridge b  pattern fridge  frames only\n" in show(loads(PATTERNED))
    opaque = BRIDGE % ("pattern: fridge, ", "{bus: one, opaque: fridge, allow: fridge}, bus: two")
    assert "frames only" not in show(loads(opaque))
    text = BRIDGE % ("", "{bus: one, allow: fridge}, {bus: two, deny: x}, {uart: /dev/x, allow: fridge}")
    sides = [line.split("  ", 1)[1:] for line in show(loads(text)).split("\n")[-3:]]
    assert [words[-1].split("─ ")[-1] for words in sides] == [
        "bus one  filtered  frames only",
        "bus two  filtered",
        "uart /dev/x 115200  filtered",
    ]


def test_check_prints_notes_and_still_says_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(PATTERNED)
    assert main(["check", str(path)]) == 0
    told = capsys.readouterr().out
    assert "note: bridges.b: only TMQ frames cross here" in told
    assert told.endswith(f"{path}: ok\n")


LIMITS = (
    PAIR
    + """\
buses:
  one: {on: a, message_bytes: %s, listen: [tcp://0.0.0.0:1, {url: "tcp://0.0.0.0:2", trunk: true}]}
  two: {on: b, listen: tcp://0.0.0.0:3, dial: {url: "tcp://10.0.0.1:2", trunk: true%s}}
"""
)


@pytest.mark.parametrize(
    ("listening", "dialling", "warned"),
    [
        ("1048576", "", []),
        ("4000000", "", ["messages may have 1048576 bytes here and 4000000 on bus one"]),
        ("4000000", ", message_bytes: 4000000", []),
    ],
)
def test_buses_that_are_joined_accept_the_same_lengths(
    listening: str, dialling: str, warned: list[str]
) -> None:
    found = warnings(LIMITS % (listening, dialling))
    assert found == [f"{text}: a longer one ends the connection" for text in warned]
