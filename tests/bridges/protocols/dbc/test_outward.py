"""Values of the bus as frames of CAN messages."""

import json
from pathlib import Path
from typing import Any

import pytest

from bridges.items import OWN
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.fills import FILLS, chosen_for
from bridges.protocols.translator import Translator
from tests.bridges.protocols.dbc.dbc_support import CAR, SELECTED, made
from tests.bridges.protocols.spoken_support import message

READY: dict[str, Any] = {
    "initial": {"Demand": 0, "Mode": "Off", "Checksum": 0},
    "fill": {"AliveCounter": "counter"},
}


def sent(translator: Translator[Any], pattern: str, data: str, now_s: float = 0.0) -> Any:
    """Return the data of the frames that a value becomes, in hex, or why it becomes none."""
    found = translator.send(message(pattern, data.encode()), now_s)
    return found.why or [(identifier, data.hex(), marks) for identifier, data, marks in found.items]


def test_a_message_leaves_when_all_of_its_signals_are_known(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Command",))
    assert sent(translator, "car/Command/Demand", "-10") == "incomplete"
    assert translator.condition == "Command waits for Mode, AliveCounter, Checksum"
    assert sent(translator, "car/Command/Mode", "On") == "incomplete"
    assert sent(translator, "car/Command/AliveCounter", "9") == "incomplete"
    assert sent(translator, "car/Command/Checksum", "255") == [(0x400, "ec5f02ff", 0)]
    assert translator.condition == ""


def test_initial_values_and_fills_are_known(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Command",), **READY)
    assert sent(translator, "car/Command/Mode", "1") == [(0x400, "00100000", 0)]
    assert sent(translator, "car/Command/Mode", "1") == [(0x400, "00500000", 0)]
    assert sent(translator, "car/Command/AliveCounter", "1") == "filled"


def test_a_text_that_looks_like_a_number_is_the_text(tmp_path: Path) -> None:
    text = CAR.replace('VAL_ 1024 Mode 0 "Off" 1 "On"', 'VAL_ 1024 Mode 0 "Off" 1 "2" 2 "nan" 3 "0"')
    translator = made(tmp_path, text, send=("Command",), **READY)
    data = [sent(translator, "car/Command/Mode", value)[0][1] for value in ("2", "nan", "0", "1")]
    assert [int(one[2], 16) & 3 for one in data] == [1, 2, 3, 1]


def test_a_number_out_of_range_is_taken_only_where_it_has_a_text(tmp_path: Path) -> None:
    text = CAR.replace("[0|3]", "[0|1]").replace('1 "On"', '1 "On" 3 "Fault"')
    translator = made(tmp_path, text, send=("Command",), **READY)
    found = [sent(translator, "car/Command/Mode", value) for value in ("Fault", "3", "2", "1")]
    assert [one == "out of range" for one in found] == [False, False, True, False]


def test_what_a_setting_has_for_a_signal_of_one_message_counts_before_what_it_has_for_all() -> None:
    named = {"Mode": 1, "Command/Demand": 2, "Lights/Mode": 3, "Command/Mode": 4, "Command/Speed": 5}
    message = load(CAR, "dbc").messages["Command"]
    assert chosen_for(message, {**named, "Speed": 6, "Checksum": 7}) == {
        "Mode": 4,
        "Demand": 2,
        "Checksum": 7,
    }


def test_a_message_is_written_as_json_at_once(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Command",), **READY)
    assert sent(translator, "car/Command", json.dumps({"Demand": 0.5, "Mode": "On"})) == [
        (0x400, "01100000", 0)
    ]
    assert sent(translator, "car/Command", json.dumps({"v": {"Demand": 1}})) == [(0x400, "02500000", 0)]
    assert sent(translator, "car/Command", json.dumps({"Demand": 5, "Speed": 1})) == "no signal"
    assert sent(translator, "car/Command/Mode", "On")[0][1][:2] == "02"  # nothing of it was taken


@pytest.mark.parametrize(
    ("pattern", "data", "why"),
    [
        ("car/Command/Demand", "501", "out of range"),
        ("car/Command/Demand", "1e999", "out of range"),
        ("car/Command/Demand", "9" * 390, "out of range"),
        ("car/Command/Demand", "nan", "no value"),
        ("car/Command/Demand", "fast", "no value"),
        ("car/Command/Demand", "\udcff", "no value"),
        ("car/Command/Mode", "Half", "no value"),
        ("car/Command", "[1]", "no value"),
        ("car/Command", "[" * 2000, "no value"),
        ("car/Command", '{"Demand": null}', "no value"),
        ("car/Command", '{"Demand": NaN}', "out of range"),
        ("car/Command/Speed", "1", "not sent here"),
        ("car/EngineData/Rpm", "1", "not sent here"),
        ("car", "1", "not sent here"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_reason(
    tmp_path: Path, pattern: str, data: str, why: str
) -> None:
    translator = made(tmp_path, send=("Command",), **READY)
    found = translator.send(message(pattern, data.encode(errors="surrogateescape")), 0)
    assert (found.why, list(found.items)) == (why, [])


def test_without_send_nothing_is_sent(tmp_path: Path) -> None:
    assert sent(made(tmp_path), "car/Command/Demand", "1") == "not sent here"


def test_a_node_sends_what_the_database_says(tmp_path: Path) -> None:
    translator = made(tmp_path, sender="GATEWAY", **READY)
    assert sent(translator, "car/Command/Demand", "0") == [(0x400, "00000000", 0)]
    assert sent(translator, "car/Lights/Level", "50") == [(0x401, "0132", 0)]


def test_a_signal_of_a_multiplexer_chooses_its_page(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Lights",))
    assert sent(translator, "car/Lights/Level", "50") == [(0x401, "0132", 0)]
    assert sent(translator, "car/Lights/Left", "1") == [(0x401, "0001", 0)]
    assert sent(translator, "car/Lights/Page", "1") == [(0x401, "0132", 0)]
    assert sent(translator, "car/Lights", '{"Page": 0, "Level": 1}') == "multiplexer"
    assert sent(translator, "car/Lights/Page", "5") == "incomplete"
    assert translator.condition == "Lights waits for Page"


def test_a_page_is_that_of_a_text_or_else_of_a_value(tmp_path: Path) -> None:
    translator = made(tmp_path, SELECTED, send=("Deep",))
    assert sent(translator, "car/Deep/Named", "7") == [(5, "0107", 0)]
    assert sent(translator, "car/Deep/Scaled", "8") == [(5, "0208", 0)]


NESTED = """VERSION ""
BU_: A
BO_ 5 Deep: 4 A
 SG_ Page M : 0|4@1+ (1,0) [0|0] "" A
 SG_ Inner m1M : 4|4@1+ (1,0) [0|0] "" A
 SG_ Left m2 : 8|8@1+ (1,0) [0|0] "" A
 SG_ Right m3 : 8|8@1+ (1,0) [0|0] "" A
 SG_ Wide m1 : 16|8@1+ (1,0) [0|0] "" A
SG_MUL_VAL_ 5 Inner Page 1-1;
SG_MUL_VAL_ 5 Left Inner 2-2;
SG_MUL_VAL_ 5 Right Inner 3-4;
SG_MUL_VAL_ 5 Wide Page 1-2;
"""


def test_pages_within_pages_are_chosen_too(tmp_path: Path) -> None:
    translator = made(tmp_path, NESTED, send=("Deep",))
    assert sent(translator, "car/Deep/Wide", "9") == "multiplexer"  # on pages 1 and 2
    assert sent(translator, "car/Deep/Left", "7") == "incomplete"
    assert sent(translator, "car/Deep/Wide", "9") == [(5, "21070900", 0)]
    assert sent(translator, "car/Deep/Right", "8") == "multiplexer"
    assert sent(translator, "car/Deep", '{"Inner": 4, "Right": 8}') == [(5, "41080900", 0)]
    assert sent(translator, "car/Deep/Page", "2") == [(5, "02000900", 0)]


def test_a_standby_knows_what_the_active_gateway_sent(tmp_path: Path) -> None:
    active = [False]
    translator = made(
        tmp_path, send=("Command",), may_act=lambda _: active[0], fill={"AliveCounter": "counter"}
    )
    assert translator.receive([(0x400, bytes.fromhex("ec5f02ff"), 0)], 0) == []
    active[0] = True
    assert sent(translator, "car/Command/Mode", "Off") == [(0x400, "ec8f02ff", 0)]  # the counter goes on


def test_another_sender_of_our_message_is_counted_and_not_believed(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Command",))
    assert translator.receive([(0x400, bytes(4), 0), (0x400, bytes(4), OWN)], 0) == []
    assert translator.wire.stats.rejected == {"another sender": 1}
    assert sent(translator, "car/Command/Mode", "Off") == "incomplete"


def test_a_cycle_repeats_while_its_source_is_young_and_this_gateway_may_act(tmp_path: Path) -> None:
    active = [True]
    translator = made(
        tmp_path, send=("Command",), cycle=True, age_ms=120, may_act=lambda _: active[0], **READY
    )
    assert sent(translator, "car/Command/Demand", "1", 0.0) == [(0x400, "02000000", 0)]
    assert sent(translator, "car/Command/Demand", "2", 0.01) == []  # with the next one
    assert translator.due_s == 0.05
    assert [data.hex() for _, data, _ in translator.turn(0.05).items] == ["04400000"]
    assert [data.hex() for _, data, _ in translator.turn(0.1).items] == ["04800000"]
    assert not translator.turn(0.151).items
    assert translator.due_s == float("inf")
    assert translator.condition == "Command rests: too old: Demand"
    assert len(sent(translator, "car/Command/Demand", "3", 0.3)) == 1
    active[0] = False
    assert not translator.turn(0.35).items
    assert translator.condition == ""


def test_a_cycle_ends_with_the_first_of_its_sources_that_is_silent(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Command",), cycle=True, age_ms=120, **READY)
    assert len(sent(translator, "car/Command/Mode", "Off", 0.0)) == 1
    for number in range(1, 30):
        now_s = number * 0.01
        found = sent(translator, "car/Command/Demand", "1", now_s)
        assert found == ([] if number <= 12 else "incomplete"), now_s
        assert len(translator.turn(now_s).items) == (number in (5, 10)), now_s
    assert translator.condition == "Command rests: too old: Mode"
    assert len(sent(translator, "car/Command/Mode", "Off", 0.3)) == 1
    assert translator.condition == ""


def test_a_page_that_is_not_known_whole_is_waited_for_and_ends_the_cycle(tmp_path: Path) -> None:
    level = ' SG_ Level m1 : 8|8@1+ (1,0) [0|100] "%" BODY\n'
    text = CAR.replace(level, level + ' SG_ Warm m1 : 4|4@1+ (1,0) [0|15] "" BODY\n')
    translator = made(
        tmp_path, text + 'BA_ "GenMsgCycleTime" BO_ 1025 50;\n', send=("Lights",), cycle=True, age_ms=9000
    )
    assert sent(translator, "car/Lights/Left", "1", 0.0) == [(0x401, "0001", 0)]
    assert sent(translator, "car/Lights/Level", "50", 0.01) == "incomplete"
    for now_s in (0.05, 0.1):
        assert not translator.turn(now_s).items
        assert translator.condition == "Lights waits for Warm"
    assert translator.due_s == float("inf")
    assert sent(translator, "car/Lights/Warm", "3", 0.2) == [(0x401, "3132", 0)]
    assert translator.condition == ""
    assert [data.hex() for _, data, _ in translator.turn(0.25).items] == ["3132"]


def test_a_cycle_that_is_late_does_not_catch_up(tmp_path: Path) -> None:
    translator = made(tmp_path, send=("Command",), cycle=True, age_ms=10_000, **READY)
    sent(translator, "car/Command/Demand", "1", 0.0)
    assert len(translator.turn(1.0).items) == 1
    assert translator.due_s == pytest.approx(1.05)


def checksum(data: bytes, identifier: int, count: int, bits: int) -> int:
    return ~sum(data) + identifier


def broken(data: bytes, identifier: int, count: int, bits: int) -> int:
    raise KeyError("table")


def test_a_checksum_is_made_after_the_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FILLS, "find", {"counter": FILLS.find("counter"), "sum": checksum}.get)
    settings: dict[str, Any] = {
        "initial": {"Demand": 0, "Mode": 0},
        "fill": {"Checksum": "sum", "AliveCounter": "counter"},
    }
    translator = made(tmp_path, send=("Command",), **settings)
    sent(translator, "car/Command/Mode", "0")
    assert sent(translator, "car/Command/Mode", "1") == [(0x400, f"005000{~0x50 & 0xFF:02x}", 0)]


def test_a_fill_that_fails_sends_nothing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FILLS, "find", {"counter": FILLS.find("counter"), "sum": broken}.get)
    settings: dict[str, Any] = {
        "initial": {"Demand": 0, "Mode": 0},
        "fill": {"Checksum": "sum", "AliveCounter": "counter"},
    }
    translator = made(tmp_path, send=("Command",), **settings)
    assert sent(translator, "car/Command/Mode", "0") == "fill failed"
    assert translator.condition == "Command: a fill failed: KeyError('table')"
