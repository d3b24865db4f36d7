"""Frames of a CAN bus as values of signals."""

import json
from pathlib import Path
from struct import unpack
from typing import Any

import pytest

from bridges.items import ERROR, EXTENDED, FD, OWN, REMOTE
from tests.bridges.protocols.dbc.dbc_support import made, shown, told

ENGINE = (0x100, bytes.fromhex("12c05a14107fb700"), 0)  # 1200 rpm, 50 degC, 10 Nm, running
GEARBOX = (0x200, bytes((3, 0xF6)), 0)


def test_each_signal_is_a_frame(tmp_path: Path) -> None:
    found = shown(made(tmp_path), [ENGINE, GEARBOX])
    assert found == {
        "car/EngineData/Rpm": "1200",
        "car/EngineData/Coolant": "50",
        "car/EngineData/Torque": "10",
        "car/EngineData/Running": "1",
        "car/EngineData/Fuel": str(0x00B77F),
        "car/Gearbox/Gear": "Drive",
        "car/Gearbox/Oil": "-10",
    }


def test_a_number_is_eight_bytes_also_where_a_text_stands_for_it(tmp_path: Path) -> None:
    messages = made(tmp_path, form="number").receive([GEARBOX], 0)
    assert [unpack(">d", data) for _, data in told(messages)] == [(3.0,), (-10.0,)]


def test_json_has_unit_and_time(tmp_path: Path) -> None:
    translator = made(tmp_path, form="json", unix_s=lambda now_s: 1000 + now_s)
    found = [json.loads(data) for _, data in told(translator.receive([GEARBOX], 2.5))]
    assert found == [{"v": "Drive", "unit": "", "t": 1002.5}, {"v": -10, "unit": "degC", "t": 1002.5}]


def test_a_message_is_one_json_if_asked(tmp_path: Path) -> None:
    translator = made(tmp_path, per="message", unix_s=lambda now_s: 1000 + now_s)
    ((pattern, data),) = told(translator.receive([GEARBOX], 1), "car", "Gearbox")
    assert pattern == "car/Gearbox"
    assert json.loads(data) == {"v": {"Gear": "Drive", "Oil": -10}, "t": 1001}


def test_whole_numbers_of_a_message_are_written_without_decimals(tmp_path: Path) -> None:
    ((_, data),) = told(made(tmp_path, per="message").receive([ENGINE], 0), "car", "EngineData")
    assert b'"Rpm":1200,' in data
    other = (0x100, bytes((0x12, 0xC1)) + ENGINE[1][2:], 0)
    ((_, data),) = told(made(tmp_path, per="message").receive([other], 0), "car", "EngineData")
    assert b'"Rpm":1200.25,' in data


def test_bytes_behind_a_message_change_none_of_its_values(tmp_path: Path) -> None:
    longer = (ENGINE[0], ENGINE[1] + b"\xff" * 4, FD)
    assert shown(made(tmp_path), [longer]) == shown(made(tmp_path), [ENGINE])


def test_signals_of_a_multiplexer_come_with_its_value_only(tmp_path: Path) -> None:
    translator = made(tmp_path)
    assert set(shown(translator, [(0x300, bytes((0x20, 0x74, 0x0E, 0x10, 0x0E)), 0)])) == {
        f"car/Cells/{name}" for name in ("Pack", "State", "Volt1", "Volt2")
    }
    assert shown(translator, [(0x300, bytes((0x01, 0xFF, 0, 0, 0)), 0)])["car/Cells/Temp1"] == "-1"
    assert set(shown(translator, [(0x300, bytes((0x07, 0, 0, 0, 0)), 0)])) == {
        "car/Cells/Pack",
        "car/Cells/State",
    }
    assert translator.wire.stats.rejected == {"multiplexer": 1}


@pytest.mark.parametrize("settings", [{}, {"publish": "change"}, {"per": "message"}])
def test_a_short_frame_gives_what_is_in_it_and_is_counted(tmp_path: Path, settings: dict[str, Any]) -> None:
    translator = made(tmp_path, **settings)
    found = shown(translator, [(0x200, bytes((2,)), 0)])
    assert len(found) == 1
    assert "Neutral" in str(found)
    assert "Oil" not in str(found)
    assert translator.receive([(0x200, b"", 0)], 1) == []
    assert translator.wire.stats.rejected == {"short": 2}


@pytest.mark.parametrize(
    ("item", "reasons"),
    [
        ((0x101, bytes(8), 0), {"foreign": 1}),
        ((0x100 | EXTENDED, bytes(8), 0), {"foreign": 1}),
        ((0x100 | REMOTE, b"", 0), {"remote": 1}),
        ((0x100 | ERROR, bytes(8), 0), {"error frame": 1}),
        ((0x100, bytes(8), OWN), {}),
    ],
)
def test_what_is_no_message_of_the_database_is_counted(
    tmp_path: Path, item: tuple[int, bytes, int], reasons: dict[str, int]
) -> None:
    translator = made(tmp_path)
    assert translator.receive([item], 0) == []
    assert translator.wire.stats.rejected == reasons


def test_only_messages_that_are_named_come_in(tmp_path: Path) -> None:
    translator = made(tmp_path, receive=("Gearbox",))
    assert len(translator.receive([ENGINE, GEARBOX], 0)) == 2
    assert translator.wire.stats.rejected == {"foreign": 1}
    assert translator.take_counts() == (1, 1)


def test_only_changes_come_and_what_stays_now_and_then(tmp_path: Path) -> None:
    translator = made(tmp_path, publish="change", refresh_ms=1000)
    assert len(translator.receive([GEARBOX, GEARBOX, GEARBOX], 0)) == 2
    assert shown(translator, [(0x200, bytes((3, 0xF7)), 0)], 0.5) == {"car/Gearbox/Oil": "-9"}
    assert translator.receive([(0x200, bytes((3, 0xF7)), 0)], 0.9) == []
    assert len(translator.receive([(0x200, bytes((3, 0xF7)), 0)], 1.0)) == 2


def test_a_multiplexer_that_turns_pages_is_no_change(tmp_path: Path) -> None:
    translator = made(tmp_path, publish="change")
    pages = [(0x300, bytes((page, 5, 0, 0, 0)), 0) for page in (0, 1)]
    assert len(translator.receive(pages, 0)) == 5
    assert translator.receive(pages * 3, 1) == []
    assert shown(translator, [(0x300, bytes((1, 6, 0, 0, 0)), 0)], 2) == {"car/Cells/Temp1": "6"}


def test_at_most_every_so_often_the_latest_value(tmp_path: Path) -> None:
    translator = made(tmp_path, every_ms=100)
    assert shown(translator, [(0x200, bytes((3, 1)), 0)], 0)["car/Gearbox/Oil"] == "1"
    for number in range(2, 9):
        assert translator.receive([(0x200, bytes((3, number)), 0)], number / 100) == []
    assert translator.due_s == 0.1
    late = told(translator.turn(0.1).messages, "car", "Gearbox", "Gear", "Oil")
    assert late == [("car/Gearbox/Gear", b"Drive"), ("car/Gearbox/Oil", b"8")]
    assert translator.due_s == float("inf")
    assert not translator.turn(0.2).messages
    assert translator.receive([(0x200, bytes((3, 9)), 0)], 0.15) == []
    assert len(translator.receive([(0x200, bytes((3, 9)), 0)], 0.21)) == 2


def test_pages_of_a_multiplexer_do_not_displace_each_other(tmp_path: Path) -> None:
    translator = made(tmp_path, every_ms=100)
    pages = [(0x300, bytes((page, 5, 0, 0, 0)), 0) for page in (0, 1)]
    translator.receive(pages, 0)
    translator.receive(pages, 0.05)
    late = dict(
        told(translator.turn(0.1).messages, "car", "Cells", "Volt1", "Volt2", "Temp1", "Pack", "State")
    )
    assert late["car/Cells/Temp1"] == b"5"
    assert late["car/Cells/Volt1"] == b"0.005"


def test_pages_wait_each_for_its_own_time(tmp_path: Path) -> None:
    translator = made(tmp_path, every_ms=100)
    pages = [(0x300, bytes((page, 5, 0, 0, 0)), 0) for page in (0, 1)]
    for now_s, some in ((0, pages[:1]), (0.05, pages[1:]), (0.06, pages)):
        translator.receive(some, now_s)
    names = ("Volt1", "Volt2", "Temp1", "Pack", "State")
    assert "car/Cells/Temp1" not in dict(told(translator.turn(0.1).messages, "car", "Cells", *names))
    assert translator.due_s == pytest.approx(0.15)
    assert told(translator.turn(translator.due_s).messages, "car", "Cells", "Temp1") == [
        ("car/Cells/Temp1", b"5")
    ]


def test_a_message_too_long_for_a_frame_is_counted(tmp_path: Path) -> None:
    names = "".join(f' SG_ {"Signal" * 8}{n} : {n}|1@1+ (1,0) [0|0] "" X\n' for n in range(64))
    text = f'VERSION ""\nBU_: X\nBO_ 5 Long: 8 X\n{names}'
    translator = made(tmp_path, text, per="message")
    assert translator.receive([(5, bytes(8), 0)], 0) == []
    assert translator.wire.stats.rejected == {"oversize": 1}
