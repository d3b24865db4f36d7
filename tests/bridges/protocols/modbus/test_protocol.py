"""The records of Modbus: what is refused, and what they say of themselves."""

from typing import Any

import pytest

from bridges.protocols.modbus.protocol import DeviceSettings, Modbus, Register


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"register": 65_536}, "out of range"),
        ({"register": 65_535, "type": "f32"}, "the last is 65535"),
        ({"register": 0, "device": -1}, "out of range"),
        ({"register": 0, "device": 256}, "out of range"),
        ({"register": 0, "write": True}, "needs min and max"),
        ({"register": 0, "write": True, "low": 2, "high": 1}, "min is above max"),
        (
            {"register": 0, "type": "ascii", "length": 2, "write": True, "low": 1, "high": 2},
            "min and max are of numbers, and type ascii is text",
        ),
        ({"register": 0, "low": 2}, "add write: true"),
        ({"register": 0, "kind": "input", "write": True, "low": 0, "high": 1}, "nothing can be written"),
        ({"register": 0, "kind": "coil", "type": "u16"}, "leave type out"),
        ({"register": 0, "type": "ascii"}, "length"),
        ({"register": 0, "length": 2}, "length"),
        ({"register": 0, "type": "u24"}, "has 3 bytes, and registers have 2"),
        ({"register": 0, "type": "u8"}, "has 1 bytes, and registers have 2"),
        ({"register": 0, "type": "u8"}, "is bits: .0, 7. or .8, 15."),
        ({"register": 0, "type": "bcd8"}, "has 1 bytes, and registers have 2"),
        ({"register": 0, "kind": "coil", "bit": 1}, "leave bit and bits out"),
        ({"register": 0, "kind": "discrete", "bits": (0, 0)}, "leave bit and bits out"),
        (
            {"register": 0, "bits": (0, 7), "write": True, "low": 0, "high": 1},
            "some bits of a register cannot be written",
        ),
        ({"register": 0, "bits": (0, 64)}, "out of range"),
        ({"register": 0, "bits": (1,)}, "1 given"),
        ({"register": 0, "type": "bool", "bit": 3, "write": True}, "one bit of a register cannot be written"),
        ({"register": 0, "read": False}, "neither read nor written"),
        ({"register": 0, "type": "ascii", "length": 124, "write": True}, "at most 123"),
        ({"register": 0, "scale_register": 65_536}, "out of range"),
        ({"register": 0, "scale_register": 2, "type": "f32"}, "of integers"),
        ({"register": 0, "scale_register": 2, "type": "bool", "bit": 1}, "of integers"),
        ({"register": 0, "scale_register": 2, "kind": "coil"}, "of integers"),
        ({"register": 0, "scale_register": 2, "choices": {"1": "on"}}, "none with choices"),
        ({"register": 0, "scale_register": 2, "write": True, "low": 0, "high": 1}, "is not written"),
        ({"register": 0, "scale_register": 1, "type": "u32"}, "another register"),
        ({"register": 0, "scale_register": 9, "high_register": 9, "type": "u32"}, "another register"),
        ({"register": 0, "high_register": 9}, "of type u32 and i32"),
        ({"register": 0, "high_register": 9, "type": "f32"}, "of type u32 and i32"),
        ({"register": 0, "high_register": 9, "kind": "coil"}, "of type u32 and i32"),
        ({"register": 0, "high_register": 0, "type": "u32"}, "another register"),
        ({"register": 0, "high_register": 65_536, "type": "u32"}, "out of range"),
        (
            {"register": 0, "high_register": 9, "type": "u32", "write": True, "low": 0, "high": 1},
            "two requests",
        ),
    ],
)
def test_a_row_that_cannot_be_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Register(pattern=("a",), **settings)


TEXT = Register(register=0, type="bits", length=1, pattern=("a",))
FAR = Register(register=0, scale_register=125, pattern=("a",))
APART = Register(register=200, high_register=75, type="u32", pattern=("a",))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"replay": True}, "never sent again"),
        ({"devices": (DeviceSettings(device=1), DeviceSettings(device=1))}, "listed twice"),
        ({"devices": (DeviceSettings(device=1, most=1),)}, "its device is asked for 1"),
        ({"registers": (FAR,)}, "device 1, holding 0: 126 registers, and its device is asked for 125"),
        ({"registers": (APART,)}, "device 1, holding 200: 126 registers, and its device is asked for 125"),
        ({"form": "number", "registers": (TEXT,)}, "no text"),
        ({"registers": ()}, "0 given"),
        ({"order": "BA"}, "a: order BA is for 2 bytes, and f32 has 4: write BADC or DCBA"),
        ({"devices": (DeviceSettings(device=1, order="AB"),)}, "order AB is for 2 bytes"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_is_refused(settings: dict[str, Any], why: str) -> None:
    rows = (Register(register=0, type="f32", pattern=("a",)),)
    with pytest.raises(ValueError, match=why):
        Modbus(**{"registers": rows, **settings})


def test_a_table_says_what_enters_what_leaves_and_what_the_values_are() -> None:
    limit = Register(register=1, pattern=("a", "limit"), unit="A", write=True, low=0, high=32)
    record = Modbus(registers=(Register(register=0, pattern=("a", "b")), limit), form="json")
    assert record.way.inward == (("a", "b"), ("a", "limit"))
    assert record.way.outward == (("a", "limit", "set"),)
    assert record.label() == "modbus, 2 values of 1 device"
    described = {
        one.pattern: (one.form, one.unit, one.low, one.high, one.writable) for one in record.quantities()
    }
    assert described == {
        ("a", "b"): ("json", "", None, None, False),
        ("a", "limit"): ("json", "A", 0, 32, True),
    }
    assert record.asks
    assert record.stops_in_doubt


def test_an_order_of_two_letters_is_for_all_values_that_have_no_order_and_no_more_bytes() -> None:
    rows = (
        Register(register=0, pattern=("a",)),
        Register(register=1, kind="coil", pattern=("b",)),
        Register(register=2, type="f32", order="CDAB", pattern=("c",)),
    )
    assert Modbus(registers=rows, order="BA").settings(1).order == "BA"


def test_a_pattern_has_room_for_that_of_its_commands() -> None:
    more: dict[str, Any] = {"write": True, "low": 0, "high": 1}
    Register(register=0, pattern=("a",) * 254, **more)
    with pytest.raises(ValueError, match="at most 254"):
        Register(register=0, pattern=("a",) * 255, **more)


def test_numbers_of_sunspec_are_not_taken_for_those_of_a_manual() -> None:
    plain = Register(register=40_083, pattern=("a",))
    sunspec = Register(register=40_083, scale_register=40_084, pattern=("a",))
    (note,) = Modbus(registers=(plain,)).problems()
    assert ("manual" in note.text, note.is_error, note.is_note) == (True, False, True)
    assert [*Modbus(registers=(sunspec,)).problems()] == []


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"register": 1}, "device 1, holding 1"),
        ({"register": 0}, "device 1, holding 0-1"),
        ({"register": 1, "type": "f32"}, "device 1, holding 1-2"),
        ({"register": 2}, ""),
        ({"register": 0, "type": "u32"}, ""),
        ({"register": 1, "device": 2}, ""),
        ({"register": 1, "kind": "input"}, ""),
    ],
)
def test_a_value_with_some_but_not_all_registers_of_another_is_a_problem(
    settings: dict[str, Any], place: str
) -> None:
    rows = (Register(register=0, type="f32", pattern=("a",)), Register(pattern=("b",), **settings))
    found = [problem.text.partition(" is also")[0] for problem in Modbus(registers=rows).problems()]
    assert found == [place][: bool(place)]
