"""Telegrams of smart meters: verified, their lines as values, logs as text, and what is none rejected."""

import struct
from typing import Any

import pytest

from bridges.protocols.p1.codes import UNITS
from bridges.protocols.p1.lines import fields_of, parse
from bridges.protocols.p1.protocol import P1, code_in
from bus.quantity.forms import Form
from bus.quantity.known import Quantities
from bus.quantity.telling import told as value_of
from bus.wire.notation import pattern_of
from tests.bridges.protocols.blocks_support import METER, heard, telegram, unsummed
from tests.bridges.protocols.spoken_support import message, told, translator

RECORD = P1(root=("m",))
OLD = P1(root=("m",), checksum="optional")
WHOLE = telegram()
VALUES = {
    "m/1-3/0.2.8": "50",
    "m/0-0/1.0.0": "240117081530W",
    "m/0-0/96.1.1": "4530303331303033303031363939353135",
    "m/1-0/1.8.1": "4321.075",
    "m/1-0/2.8.1": "0",
    "m/0-0/96.14.0": "2",
    "m/1-0/1.7.0": "0.412",
    "m/1-0/99.97.0": "(1)(0-0:96.7.19)(221105093002W)(0000000301*s)",
    "m/1-0/32.7.0": "231.4",
    "m/0-1/24.1.0": "3",
    "m/0-1/24.2.1": "2718.281",
    "m/0-1/24.2.1/time": "240117081500W",
}


def of(line: str, **settings: Any) -> dict[str, str]:
    return heard(P1(root=("m",), **settings), telegram([line]))[0]


def test_each_line_is_a_value_under_its_channel_and_code() -> None:
    values, rejected, counts = heard(RECORD, WHOLE)
    assert values == VALUES
    assert (rejected, counts) == ({"not available": 1}, (1, 0))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("1-0:1.8.0*255(00052185.7825309*kWh)", {"m/1-0/1.8.0": "52185.7825309"}),
        ("1-0:1.8.0(006545766*Wh)", {"m/1-0/1.8.0/Wh": "6545766"}),
        ("1-0:3.7.0(0000.120*kVAr)", {"m/1-0/3.7.0": "0.12"}),
        ("0-0:17.0.0(016*A)", {"m/0-0/17.0.0/A": "16"}),
        ("1-0:13.7.0(0.951)", {"m/1-0/13.7.0": "0.951"}),
        ("0-2:24.2.1(2401170815)(12.500*GJ)", {"m/0-2/24.2.1/GJ": "12.5", "m/0-2/24.2.1/time": "2401170815"}),
        ("1-0:1.6.0(240103174500W)(3.1*kW)", {"m/1-0/1.6.0": "3.1", "m/1-0/1.6.0/time": "240103174500W"}),
        ("1-0:1.6.0(3.1*kW)(24-01-03 17:45)", {"m/1-0/1.6.0": "3.1", "m/1-0/1.6.0/time": "24-01-03 17:45"}),
        ("0-1:24.2.1(700101010000W)(00000000)", {}),
        ("1-0:72.7.0(---.-*V)", {}),
        ("1-0:99.97.0()", {}),
        ("1-0:99.97.0(0)(0-0:96.7.19)", {"m/1-0/99.97.0": "(0)(0-0:96.7.19)"}),
        ("0-0:96.1.1(00000000000000)", {"m/0-0/96.1.1": "00000000000000"}),
        ("1.8.0(00123.4*kWh)", {"m/1.8.0": "123.4"}),
        (
            "0-1:24.3.0(240117080000)(00)(60)(1)(0-1:24.2.1)(m3)\r\n(00001.001)",
            {"m/0-1/24.3.0": "1.001", "m/0-1/24.3.0/time": "240117080000"},
        ),
        (
            "0-0:98.1.0(1)(1-0:1.6.0)(1-0:1.6.0)(230801000000S)(230705181500S)(01.862*kW)",
            {"m/0-0/98.1.0": "(1)(1-0:1.6.0)(1-0:1.6.0)(230801000000S)(230705181500S)(01.862*kW)"},
        ),
        (
            "0-0:98.1.0(1)(1-0:1.6.0)(1-0:1.6.0)(230801000000S)(230705181500S)(kW)(01.862)",
            {"m/0-0/98.1.0": "(1)(1-0:1.6.0)(1-0:1.6.0)(230801000000S)(230705181500S)(kW)(01.862)"},
        ),
        (
            "0-1:24.3.0(240117080000)(00)(60)(2)(0-1:24.2.1)(0-1:24.2.3)(1)",
            {"m/0-1/24.3.0": "(240117080000)(00)(60)(2)(0-1:24.2.1)(0-1:24.2.3)(1)"},
        ),
    ],
)  # fmt: skip
def test_lines_of_meters_of_the_field(line: str, values: dict[str, str]) -> None:
    assert of(line) == values


def test_a_code_that_nobody_knows_keeps_its_zeros_unless_it_has_a_unit() -> None:
    lines = [parse(text) for text in ("1-0:88.7.0(00012)", "1-0:88.7.0(00012*q)")]
    assert [field.read("text") for line in lines if line for field in fields_of(line)] == ["00012", 12]


@pytest.mark.parametrize(
    ("data", "reason", "noise"),
    [
        (unsummed() + b"0000\r\n", "checksum", None),
        (unsummed() + b"12345\r\n", "malformed", None),
        (unsummed() + b"\r\n", "no checksum", None),
        (WHOLE[:200], "cut", None),
        (b"\xff\xfe noise\r\n", "no beginning", None),
        (b"  25803103\r\n", "no beginning", None),
        (telegram(["0-0:96.13.0(" + "30" * 5000 + ")"]), "oversize", None),
        (telegram(["1-0:1.8.1 000004"]), "malformed", 16),
        (telegram(["0-0:96.13.0(" + "30" * 1025 + ")"]), "oversize", 0),
    ],
)
def test_what_is_no_telegram_or_none_as_it_was_sent_is_counted(
    data: bytes, reason: str, noise: int | None
) -> None:
    record = P1(root=("m",), receive=("1-0:1.8.1", "96.13.0"))
    values, rejected, counts = heard(record, data, telegram(METER[:4]))
    assert values == {"m/1-0/1.8.1": "4321.075"}
    assert rejected == {reason: 1}
    assert counts[1] == (len(data) if noise is None else noise)


@pytest.mark.parametrize("lines", [METER[:4], ["0-0:96.1.1(30)"]])
def test_a_crc_may_lack_its_zeros_or_have_small_letters_or_a_nul(lines: list[str]) -> None:
    for number in range(4000):
        data = telegram([*lines, f"1-0:32.7.0({number}*V)"])
        if data[-6:-5] == b"0" and data[-5:-2].upper() != data[-5:-2].lower():
            break
    crc = data[-5:-2]
    for written in (crc, crc.lower(), crc + b"\x00"):
        assert heard(RECORD, data[:-6] + written + b"\r\n")[2] == (1, 0)


def test_a_meter_that_writes_no_crc_is_heard_if_that_is_asked_for() -> None:
    assert heard(OLD, unsummed() + b"\r\n")[0] == VALUES
    assert heard(OLD, unsummed((*METER, "garbage")) + b"\r\n")[1] == {"malformed": 1}
    assert heard(OLD, unsummed() + b"0000\r\n")[1] == {"checksum": 1}


def test_a_meter_that_has_written_a_crc_is_never_believed_without_one() -> None:
    values, rejected, _ = heard(OLD, WHOLE, unsummed(["1-0:1.8.1(9*kWh)"]) + b"\r\n")
    assert values["m/1-0/1.8.1"] == "4321.075"
    assert rejected == {"not available": 1, "no checksum": 1}


@pytest.mark.parametrize("blank", [b"\n", b""])
def test_meters_that_end_lines_with_lf_and_one_that_names_no_channel(blank: bytes) -> None:
    data = b"/ESY5Q3DA1004 V3.04\n" + blank + b"1.8.0*255(00032549.50*kWh)\n0.0.0(1336001560)\n!\n"
    assert heard(OLD, data)[0] == {"m/1.8.0": "32549.5", "m/0.0.0": "1336001560"}
    known = Quantities(OLD.quantities()).find(pattern_of("m/1.8.0"))
    assert known is not None
    assert known.unit == "kWh"


def test_a_telegram_without_a_line_is_one() -> None:
    assert heard(OLD, b"/ESY5Q3DA1004\r\n!\r\n") == ({}, {}, (1, 0))


def test_codes_can_be_chosen_of_one_channel_or_of_any() -> None:
    one = P1(root=("m",), receive=("1-0:1.7.0", "0-1/24.2.1"))
    assert set(heard(one, WHOLE)[0]) == {"m/1-0/1.7.0", "m/0-1/24.2.1", "m/0-1/24.2.1/time"}
    assert one.way.inward == (("m", "0-1", "24.2.1"), ("m", "1-0", "1.7.0"))
    some = P1(root=("m",), receive=("1.7.0", "1-0:32.7.0"))
    assert set(heard(some, WHOLE)[0]) == {"m/1-0/1.7.0", "m/1-0/32.7.0"}
    assert some.way.inward == (("m",),)
    assert {found.pattern[-1] for found in some.quantities()} == {"1.7.0", "W", "32.7.0"}
    assert code_in("1-0:1.8.0*255") == code_in("1-0/1.8.0") == ("1-0", "1.8.0")
    assert set(heard(P1(root=("m",), receive=("1-0:1.7.0*255",)), WHOLE)[0]) == {"m/1-0/1.7.0"}
    assert code_in("1-0:1.8.0*1") == ("1-0", "1.8.0*1")
    with pytest.raises(ValueError, match="no OBIS code: write it like"):
        P1(receive=("power",))


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        ("m/1-0/1.8.1", "kWh"),
        ("m/1-0/1.8.1/Wh", "Wh"),
        ("m/0-4/24.2.1", "m3"),
        ("m/1-1/1.7.0", "kW"),
        ("m/1-0/52.7.0", "V"),
    ],
)
def test_units_are_known_of_any_channel(pattern: str, unit: str) -> None:
    found = Quantities(RECORD.quantities()).find(pattern_of(pattern))
    assert found is not None
    assert found.unit == unit
    assert value_of(found, b"12.5") == ("12.5", 12.5)


KINDS = {
    "kWh": "1.8.0 1.8.1 1.8.2 1.8.3 1.8.4 2.8.0 2.8.1 2.8.2 2.8.3 2.8.4 15.8.0 15.8.1 15.8.2 15.8.3 15.8.4",
    "kW": "1.4.0 1.5.0 1.6.0 2.4.0 2.5.0 2.6.0 16.7.0 17.0.0 1.7.0 21.7.0 41.7.0 61.7.0 "
    "2.7.0 22.7.0 42.7.0 62.7.0 15.7.0 35.7.0 55.7.0 75.7.0",
    "kVA": "9.7.0 29.7.0 49.7.0 69.7.0 10.7.0 30.7.0 50.7.0 70.7.0",
    "A": "11.7.0 31.7.0 51.7.0 71.7.0 31.4.0 51.4.0 71.4.0",
    "V": "12.7.0 32.7.0 52.7.0 72.7.0",
    "Hz": "14.7.0",
    "m3": "24.2.1 24.2.3 24.3.0",
    "": "13.7.0 33.7.0 53.7.0 73.7.0 32.32.0 52.32.0 72.32.0 32.36.0 52.36.0 72.36.0 24.1.0 24.4.0 "
    "96.14.0 96.3.10 96.7.9 96.7.19 96.7.21",
}


@pytest.mark.parametrize("unit", KINDS)
def test_units_are_those_of_the_lists_of_grid_operators(unit: str) -> None:
    assert {code for code, known in UNITS.items() if known == unit} == set(KINDS[unit].split())


def test_a_value_is_described_at_the_channel_that_its_code_mostly_has() -> None:
    every = {one.pattern for one in RECORD.quantities()}
    for channel, code in (("0-1", "24.2.1"), ("0-0", "96.14.0"), ("0-0", "1.0.0"), ("1-0", "1.7.0")):
        assert [one[1] for one in every if one[2:] == (code,)] == [channel]


def test_times_identifiers_and_logs_are_text_also_where_they_are_digits() -> None:
    known = Quantities(RECORD.quantities())
    for pattern in ("m/0-0/1.0.0", "m/0-0/96.1.1", "m/1-0/99.97.0", "m/0-1/24.2.1/time"):
        found = known.find(pattern_of(pattern))
        assert found is not None
        assert found.is_text
    assert not [one for one in P1(form="number").quantities() if one.is_text]


def test_forms() -> None:
    forms: dict[Form, bytes] = {
        "number": struct.pack(">d", 2718.281),
        "json": b'{"v":2718.281,"unit":"m3","t":7.0}',
    }
    for form, data in forms.items():
        made = translator(P1(root=("m",), form=form), unix_s=lambda _: 7.0)
        found = dict(told(made.take([WHOLE], 0.0), *RECORD.names(), "m"))
        assert found["m/0-1/24.2.1"] == data
        assert ("m/0-0/1.0.0" in found) is (form == "json")
        assert made.wire.stats.rejected == {"not available": 1}
    made = translator(P1(form="number"))
    assert made.take([telegram(["1-0:1.7.0(2A)", "0-0:96.13.0(AB)", "1-0:1.8.0( - )"])], 0.0) == []
    assert made.wire.stats.rejected == {"not a value": 1, "not available": 1}
    digits = of("0-2:24.2.1(2401170815)(12.500*GJ)", form="json")["m/0-2/24.2.1/time"]
    assert digits.startswith('{"v":"2401170815"')
    assert P1(form="json").anew
    assert not RECORD.anew


def test_what_is_not_understood_is_told_with_what_to_do() -> None:
    assert RECORD.guess(unsummed()[-100:] + b"\r\n", "x") == "telegrams without a CRC: `checksum: optional`"
    assert RECORD.guess(b"\xdb\x08SAG\x01", "x").startswith("encrypted telegrams")
    assert RECORD.guess(b"zzz", "x") == "no LF in the last 3: x"


def test_nothing_leaves() -> None:
    assert translator(RECORD).send(message("m/1-0/1.8.1", b"1"), 0.0).why == "not sent here"
