"""Databases of CAN messages: read, refused with a place, and their flaws."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from bridges.items import EXTENDED
from bridges.protocols.dbc.database import Unreadable, load, read
from tests.bridges.protocols.dbc.dbc_support import CAR, TRUCK, written

SYM = """FormatVersion=6.0 // Do not edit this line!
Title="plant"

{ENUMS}
Enum=Switch(0="Off", 1="On")

{SENDRECEIVE}

[Pump]
ID=100h
Len=8
CycleTime=100
Var=Pressure unsigned 0,16 /u:bar /f:0.01
Var=Motor unsigned 16,1 /e:Switch
"""
KCD = """<NetworkDefinition xmlns="http://kayak.2codeornot2code.org/1.0">
 <Document name="plant"/><Node id="1" name="Plc"/>
 <Bus name="line"><Message id="0x100" length="8" name="Pump" interval="100">
  <Producer><NodeRef id="1"/></Producer>
  <Signal name="Pressure" offset="0" length="16"><Value slope="0.01" unit="bar"/></Signal>
  <Signal name="Motor" offset="16"><LabelSet><Label name="On" value="1"/></LabelSet></Signal>
 </Message></Bus>
</NetworkDefinition>
"""


def _of_kcd(number: int, name: str) -> str:
    form = "extended" if number & EXTENDED else "standard"
    head = f'<Message id="0x{number & ~EXTENDED:x}" format="{form}" length="8" name="{name}">'
    return f'{head}<Signal name="A" offset="0" length="8"/></Message>\n'


TWINS: Final[dict[str, tuple[Callable[[int, str], str], str, str]]] = {
    "dbc": (
        lambda number, name: f'BO_ {number} {name}: 8 V\n SG_ A : 0|8@1+ (1,0) [0|0] "" V\n',
        'VERSION ""\n',
        "",
    ),
    "kcd": (
        _of_kcd,
        '<NetworkDefinition xmlns="http://kayak.2codeornot2code.org/1.0"><Document/><Bus name="b">\n',
        "</Bus></NetworkDefinition>",
    ),
}


def test_a_dbc_has_messages_signals_and_their_facts() -> None:
    found = load(CAR, "dbc")
    assert found.flaws == ()
    assert found.nodes == ("ECM", "TCM", "BODY", "GATEWAY")
    engine, cells = found.messages["EngineData"], found.messages["Cells"]
    assert (engine.identifier, engine.size, engine.cycle_ms, engine.senders) == (0x100, 8, 10, ("ECM",))
    rpm = next(one for one in engine.signals if one.name == "Rpm")
    assert (rpm.is_big, rpm.scale, rpm.low, rpm.high, rpm.unit) == (True, 0.25, 0, 16383.75, "rpm")
    assert {one.name: one.ids for one in cells.signals if one.ids} == {
        "Volt1": {0},
        "Volt2": {0},
        "Temp1": {1},
    }
    assert found.sent_by("GATEWAY") == ("Command", "Lights")


@pytest.mark.parametrize(("text", "form"), [(SYM, "sym"), (KCD, "kcd")])
def test_sym_and_kcd_are_read_too(text: str, form: str) -> None:
    pump = load(text, form).messages["Pump"]
    assert (pump.identifier, pump.cycle_ms) == (0x100, 100)
    assert {one.name: (one.scale, one.unit) for one in pump.signals} == {
        "Pressure": (0.01, "bar"),
        "Motor": (1, ""),
    }
    assert pump.signals[1].choices[1] == "On"


def test_a_database_says_which_messages_are_j1939_or_the_record_does() -> None:
    assert all(message.is_j1939 for message in load(TRUCK, "dbc").messages.values())
    assert not any(message.is_j1939 for message in load(TRUCK, "dbc", False).messages.values())
    assert not any(message.is_j1939 for message in load(CAR, "dbc", True).messages.values())


EEC1, CCVS = "BO_ 2364540158 EEC1: 8 X\n", "BO_ 2566844926 CCVS: 8 X\n"


@pytest.mark.parametrize(
    ("entries", "said", "found"),
    [
        (EEC1 + CCVS, None, [True, True]),
        (EEC1 + "BO_ 510 Standard: 8 X\n", None, [True, False]),
        (EEC1 + CCVS.replace("926", "913"), None, [False, False]),
        (EEC1 + CCVS, False, [False, False]),
    ],
)
def test_a_database_where_all_sources_are_254_is_of_j1939_unless_the_record_says_otherwise(
    entries: str, said: bool | None, found: list[bool]
) -> None:
    database = load(f'VERSION ""\nBU_: X\n{entries}', "dbc", said)
    assert [one.is_j1939 for one in database.messages.values()] == found


@pytest.mark.parametrize(
    ("text", "form", "line", "column", "word"),
    [
        ("", "dbc", 1, 1, "no entries"),
        ("<html>\n<p>not found</p>\n</html>\n", "dbc", 1, 1, "no message in it"),
        ('VERSION ""\nBO_ 5 X Y: 8 V\n SG_ b : 4|8@1+ (1,0) [0|0] "" V\n', "dbc", 2, 9, "expected a colon"),
        (SYM.replace("Len=8", "Len=x"), "sym", 11, 5, "syntax"),
        ("<NetworkDefinition", "kcd", 1, 1, "unclosed"),
        ("<Plan/>", "kcd", 0, 0, "root element"),
    ],
)
def test_a_fault_is_told_with_its_line(text: str, form: str, line: int, column: int, word: str) -> None:
    with pytest.raises(Unreadable, match=word) as caught:
        load(text, form)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert "\n" not in str(caught.value)


SIGNAL = ' SG_ {} : {}@1+ ({},0) [0|0] "" V\n'


@pytest.mark.parametrize(
    ("signals", "word", "left"),
    [
        ((("A", "0|8", 1), ("B", "4|8", 1)), "A and B overlap", 2),
        ((("A", "60|8", 1),), "outside", 0),
        ((("A", "0|8", 0),), "no factor", 0),
        ((("A", "0|8", "1e300"),), "too large", 0),
        ((("A", "0|8", 1), ("A", "8|8", 1)), "twice", 1),
    ],
)
def test_what_is_wrong_in_a_message_is_a_flaw(
    signals: tuple[tuple[str, str, object], ...], word: str, left: int
) -> None:
    text = f'VERSION ""\nBO_ 5 X: 8 V\n{"".join(SIGNAL.format(*one) for one in signals)}'
    found = load(text, "dbc")
    assert [word in flaw.text for flaw in found.flaws] == [True]
    assert all(flaw.blocks and flaw.message == "X" for flaw in found.flaws)
    assert len(found.messages["X"].signals) == left


def test_entries_of_signals_that_are_not_there_are_flaws() -> None:
    strays = 'VAL_ 5 Gone 0 "No; never" ;\nVAL_ 5 A 0 "Off" ;\nVAL_ 6 A 1 "x" ;\nSIG_VALTYPE_ 5 Lost : 1;\n'
    found = load(f'VERSION ""\nBO_ 5 X: 8 V\n{SIGNAL.format("A", "0|8", 1)}{strays}', "dbc")
    assert [flaw.text for flaw in found.flaws] == [
        "line 4: VAL_ 5 Gone: no message has this signal",
        "line 6: VAL_ 6 A: no message has this signal",
        "line 7: SIG_VALTYPE_ 5 Lost: no message has this signal",
    ]
    assert found.messages["X"].signals[0].choices == {0: "Off"}


def test_a_float_of_odd_size_and_twins_are_flaws() -> None:
    message = 'BO_ {} {}: 8 V\n SG_ A : 0|24@1- (1,0) [0|0] "" V\n'
    text = 'VERSION ""\n' + message.format(5, "X") + message.format(6, "X") + message.format(5, "Y")
    found = load(f"{text}SIG_VALTYPE_ 5 A : 1;\n", "dbc")
    assert list(found.messages) == ["X", "X_0x6"]
    assert all(any(word in flaw.text for flaw in found.flaws) for word in ("24 bits", "name", "identifier"))


@pytest.mark.parametrize("form", ["dbc", "kcd"])
def test_messages_of_one_name_are_all_there_with_the_identifiers_of_the_later_ones(form: str) -> None:
    message, head, tail = TWINS[form]
    names = {3: "Pos", 0x13: "Pos", 0x14: "Pos_0x13", 3 | EXTENDED: "Pos"}
    found = load(head + "".join(message(number, name) for number, name in names.items()) + tail, form)
    assert [(one.name, one.id, one.is_extended) for one in found.messages.values()] == [
        ("Pos", 3, False),
        ("Pos_0x13", 0x13, False),
        ("Pos_0x13_0x14", 0x14, False),
        ("Pos_0x3x", 3, True),
    ]
    assert list(found.messages) == [one.name for one in found.messages.values()]
    assert [len(one.signals) for one in found.messages.values()] == [1] * 4
    assert [flaw.text for flaw in found.flaws] == [
        f"{name}: several messages have this name: one is read as {other}"
        for name, other in (("Pos", "Pos_0x13"), ("Pos_0x13", "Pos_0x13_0x14"), ("Pos", "Pos_0x3x"))
    ]


def test_a_range_of_identifiers_of_sym_is_a_message_for_each() -> None:
    found = load(SYM.replace("ID=100h", "ID=100h-102h"), "sym")
    assert {name: one.id for name, one in found.messages.items()} == {
        "Pump": 0x100,
        "Pump_0x101": 0x101,
        "Pump_0x102": 0x102,
    }


def test_a_file_is_read_again_only_if_it_changed(tmp_path: Path) -> None:
    path = written(tmp_path)
    first = read(str(path))
    assert read(str(path)) is first
    os.utime(path, ns=(1, 1))
    assert read(str(path)) is not first


def test_units_of_both_encodings_are_read(tmp_path: Path) -> None:
    text = CAR.replace("degC", "°C")
    for number, encoding in enumerate(("utf-8", "utf-8-sig", "cp1252")):
        path = tmp_path / f"{number}.dbc"
        path.write_bytes(text.encode(encoding))
        assert read(str(path)).messages["Gearbox"].signals[1].unit == "°C"


@pytest.mark.parametrize("form", ["dbc", "kcd", "sym"])
def test_files_without_text_and_in_other_encodings_are_named(tmp_path: Path, form: str) -> None:
    for number, (data, words) in enumerate(
        [
            (b"", "it is empty"),
            (b"\xef\xbb\xbf\r\n", "it is empty"),
            (CAR.encode("utf-16"), "it is UTF-16: save it as UTF-8"),
            (CAR.encode("utf-16-le"), "it is no text, or UTF-16 without a mark"),
            (b"PK\3\4\0\0", "it is no text"),
        ]
    ):
        path = tmp_path / f"{number}.{form}"
        path.write_bytes(data)
        with pytest.raises(Unreadable, match=f"^{words}"):
            read(str(path))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"none of \.dbc, \.kcd, \.sym"):
        read(str(written(tmp_path, name="car.xlsx")))
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "gone.dbc"))
    (tmp_path / "folder.dbc").mkdir()
    with pytest.raises(OSError, match="no regular file"):
        read(str(tmp_path / "folder.dbc"))


def test_a_database_that_is_cut_off_is_told_wherever_it_ends() -> None:
    """The parser leaves out an entry that is not whole: it would be a signal that never comes."""
    for at in range(CAR.index("BO_ 256") + 30, len(CAR), 29):
        try:
            found = load(CAR[:at], "dbc")
        except Unreadable:
            continue
        entry = CAR[CAR.rindex("\n", 0, at) + 1 : at].strip()
        whole = CAR[: at + 1].strip()[-1:] in ";" or re.fullmatch(r'SG_.*" \w+|BO_ .* \w+|', entry)
        assert whole or "the file ends within" in "".join(flaw.text for flaw in found.flaws), entry
