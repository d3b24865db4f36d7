"""Messages of J1939 by a database: by PGN and source, long ones, what is no value, and sending."""

from pathlib import Path

import pytest

from bridges.items import EXTENDED
from bridges.protocols.dbc.j1939.transport import announce, packets
from tests.bridges.protocols.dbc.dbc_support import TRUCK, made, shown
from tests.bridges.protocols.spoken_support import message

NAME = 0x8000_0000_0000_0001
EEC1 = bytes.fromhex("f0ffff4025000fff")  # 1192 rpm by source 0


def truck(folder: Path, **settings: object) -> "object":
    return made(folder, TRUCK, root=("truck",), **settings)


def test_a_message_is_matched_by_pgn_and_shown_by_source(tmp_path: Path) -> None:
    translator = made(tmp_path, TRUCK, ("truck",))
    frames = [(EXTENDED | identifier, EEC1, 0) for identifier in (0x0CF00400, 0x18F00427, 0x0CF00500)]
    assert shown(translator, frames) == {
        "truck/EEC1/0x00000000/Speed": "1192",
        "truck/EEC1/0x00000000/Source": "0",
        "truck/EEC1/0x00000000/TorqueMode": "0",
        "truck/EEC1/0x00000027/Speed": "1192",
        "truck/EEC1/0x00000027/Source": "0",
        "truck/EEC1/0x00000027/TorqueMode": "0",
    }
    assert translator.wire.stats.rejected == {"foreign": 1, "not available": 2}


def test_a_pdu1_is_matched_whatever_its_destination_is(tmp_path: Path) -> None:
    translator = made(tmp_path, TRUCK, ("truck",))
    frames = [(EXTENDED | identifier, bytes(8), 0) for identifier in (0x0C00FF03, 0x0C002103)]
    assert len(translator.receive(frames, 0)) == 4
    assert not translator.wire.stats.rejected


@pytest.mark.parametrize(
    ("data", "signal", "reason"),
    [
        ("f0ffff00feffffff", "Speed", "error value"),
        ("f0ffffffffffffff", "Speed", "not available"),
        ("0effff402500ffff", "", ""),  # this database has a text for 14
        ("f0ffff402500feff", "Starter", "error value"),
    ],
)
def test_what_is_not_available_is_no_value(tmp_path: Path, data: str, signal: str, reason: str) -> None:
    translator = made(tmp_path, TRUCK, ("truck",))
    found = shown(translator, [(EXTENDED | 0x0CF00400, bytes.fromhex(data), 0)])
    assert f"truck/EEC1/0x00000000/{signal}" not in found
    assert reason in ("", *translator.wire.stats.rejected)
    if not reason:
        assert found["truck/EEC1/0x00000000/TorqueMode"] == "Other"


def test_a_long_message_is_joined_and_read(tmp_path: Path) -> None:
    translator = made(tmp_path, TRUCK, ("truck",))
    data = bytes((0x40, 0)) + (1234).to_bytes(4, "little") + bytes(10) + (99).to_bytes(4, "little")
    frames = [(EXTENDED | 0x18ECFF05, announce(0xFECA, 20), 0)]
    frames += [(EXTENDED | 0x18EBFF05, packet, 0) for packet in packets(data)]
    assert shown(translator, frames[:-1]) == {}
    assert shown(translator, frames[-1:]) == {
        "truck/Faults/0x00000005/Lamp": "1",
        "truck/Faults/0x00000005/First": "1234",
        "truck/Faults/0x00000005/Last": "99",
    }
    assert not translator.wire.stats.rejected
    translator.receive([(EXTENDED | 0x18ECFF05, announce(0xFEC0, 20), 0)], 0)
    translator.receive([(EXTENDED | 0x18EBFF05, packet, 0) for packet in packets(data)], 0)
    assert translator.wire.stats.rejected == {"foreign": 1}
    assert translator.take_counts()[1] == 1
    translator.receive([frames[0]], 1.0)
    assert translator.due_s == 1.75
    assert not translator.turn(1.75).messages
    assert translator.wire.stats.rejected["unfinished"] == 1


def test_an_address_is_claimed_before_something_is_sent(tmp_path: Path) -> None:
    translator = made(
        tmp_path, TRUCK, ("truck",), send=("Demand",), address=0x80, name=NAME, initial={"Control": 1}
    )
    assert translator.due_s <= 0
    assert not translator.is_free
    claim = (EXTENDED | 0x18EEFF80, NAME.to_bytes(8, "little"), 0)
    assert translator.turn(0.0).items == [claim]
    assert translator.turn(0.25).items == []
    assert translator.is_free
    found = translator.send(message("truck/Demand/128/Wanted", b"1000"), 0.3)
    assert found.items == [(EXTENDED | 0x0C000080, bytes.fromhex("fd401fffffffffff"), 0)]
    translator.receive([(EXTENDED | 0x18EAFFFE, bytes((0, 0xEE, 0)), 0)], 0.4)
    assert translator.due_s == 0.0
    assert translator.turn(0.4).items == [claim]
    translator.receive([(EXTENDED | 0x18EEFF80, bytes(8), 0)], 0.5)
    assert translator.turn(0.5).items == [(EXTENDED | 0x18EEFFFE, claim[1], 0)]
    assert translator.condition.startswith("J1939 address 128 is lost")
    assert translator.send(message("truck/Demand/128/Wanted", b"1000"), 0.6).why == "address lost"


def test_who_only_listens_claims_nothing(tmp_path: Path) -> None:
    translator = made(tmp_path, TRUCK, ("truck",))
    assert translator.is_free
    assert translator.due_s == float("inf")
    translator.receive([(EXTENDED | 0x18EAFFFE, bytes((0, 0xEE, 0)), 0)], 0)
    assert not translator.turn(0).items
