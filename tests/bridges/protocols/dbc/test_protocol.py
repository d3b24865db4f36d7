"""The record of `dbc`: what it knows of its database, and what `check` tells."""

import sys
from pathlib import Path
from typing import Any

import pytest

from bridges.protocols.dbc.fills import FILLS
from bridges.protocols.dbc.protocol import Dbc
from tests.bridges.protocols.dbc.dbc_support import CAR, TRUCK, written

READY: dict[str, Any] = {
    "send": ("Command",),
    "initial": {"Demand": 0, "Mode": "Off", "Checksum": 0},
    "fill": {"AliveCounter": "counter"},
}


def record(folder: Path, text: str = CAR, **settings: Any) -> Dbc:
    return Dbc(file=str(written(folder, text)), root=("car",), **settings)


def test_what_comes_and_what_leaves_never_overlap(tmp_path: Path) -> None:
    one = record(tmp_path, sender="GATEWAY")
    claim = one.claim
    assert claim is not None
    assert claim.overlap() == claim.received.overlap(claim.sent) == ""
    chosen = [identifier in claim.received for identifier in (0x100, 0x200, 0x300, 0x400, 0x401)]
    assert chosen == [identifier not in claim.sent for identifier in (0x100, 0x200, 0x300, 0x400, 0x401)]
    assert chosen == [True, True, True, False, False]
    assert one.way.outward == (("car", "Command"), ("car", "Lights"))
    assert record(tmp_path).way.outward == ()
    assert record(tmp_path, receive=("Gearbox",)).way.inward == (("car", "Gearbox"),)


def test_names_and_quantities_are_those_of_the_database(tmp_path: Path) -> None:
    one = record(tmp_path, **READY)
    assert {"EngineData", "Rpm", "Gear", "Command"} <= set(one.names())
    known = {found.pattern: found for found in one.quantities()}
    rpm, mode = known["car", "EngineData", "Rpm"], known["car", "Command", "Mode"]
    assert (rpm.unit, rpm.low, rpm.high, rpm.writable) == ("rpm", 0, 16383.75, False)
    assert (mode.choices, mode.writable, mode.form) == ({0: "Off", 1: "On"}, True, "text")
    truck = {found.pattern for found in record(tmp_path, TRUCK).quantities()}
    assert ("car", "EEC1", 254, "Speed") in truck


def test_without_the_file_the_record_still_knows_what_it_says_itself(tmp_path: Path) -> None:
    one = Dbc(file=str(tmp_path / "gone.dbc"), send=("Command",), receive=("Gearbox",), sender="ECM")
    assert one.way.outward == (("can", "Command"),)
    assert not [*one.names(), *one.quantities(), *one.cycles()]
    assert one.claim is None
    assert one.filters() is None
    assert [problem.text for problem in one.problems()] == [
        f"{one.file} cannot be read: No such file or directory"
    ]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"per": "message", "form": "json"}, "form"),
        ({"send": ("Command",), "address": 3}, "address and name"),
        ({"cycle": True}, "add send or as"),
        ({"fill": {"A": "counter"}}, "add send or as"),
        ({"root": tuple(range(253))}, "root"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Dbc(file="car.dbc", **settings)


def told(folder: Path, text: str = CAR, **settings: Any) -> list[tuple[str, bool]]:
    """Return what is told of a record, without the name of its file."""
    found = record(folder, text, **settings).problems()
    return [(problem.text.partition(".dbc: ")[2], problem.is_error) for problem in found]


@pytest.mark.parametrize(
    ("settings", "text", "is_error"),
    [
        ({"receive": ("Gearbx",)}, 'receive: no message "Gearbx"; did you mean "Gearbox"?', True),
        ({"send": ("Comand",)}, 'send: no message "Comand"; did you mean "Command"?', True),
        ({"sender": "GATEWY"}, 'as: no node "GATEWY"; did you mean "GATEWAY"?', True),
        ({**READY, "initial": {**READY["initial"], "Demnd": 1}}, '"Demnd"; did you mean "Demand"?', True),
        ({**READY, "initial": {**READY["initial"], "Gearbox/Oil": 1}}, 'a signal "Gearbox/Oil"', True),
        ({**READY, "initial": {"Demand": 501, "Mode": 0, "Checksum": 0}}, "out of range", True),
        ({**READY, "fill": {"AliveCounter": "countr"}}, 'fill: "countr" is not installed', True),
        ({**READY, "fill": {}}, "AliveCounter looks like a counter or a checksum", False),
        ({**READY, "cycle": True, "age_ms": 40}, "never repeated", False),
        ({**READY, "cycle": True, "age_ms": 50}, "never repeated", False),
    ],
)
def test_what_is_wrong_with_a_database_is_told_with_the_nearest_name(
    tmp_path: Path, settings: dict[str, Any], text: str, is_error: bool
) -> None:
    ((found, kind),) = told(tmp_path, **settings)
    assert text in found
    assert kind is is_error


def test_a_fill_that_cannot_be_loaded_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> None:
        raise ValueError(f"{name} is broken")

    monkeypatch.setattr(FILLS, "find", find)
    assert told(tmp_path, **READY) == [("fill: counter is broken", True)]


def test_all_is_well_is_told_by_silence(tmp_path: Path) -> None:
    assert told(tmp_path, **READY, cycle=True) == told(tmp_path) == told(tmp_path, TRUCK) == []


def test_a_message_that_cannot_be_sent_is_told(tmp_path: Path) -> None:
    flawed = CAR.replace("Mode : 12|2", "Mode : 11|2")
    assert ("Command: the signals Demand and Mode overlap: it is not sent", True) in told(
        tmp_path, flawed, **READY
    )
    truck = dict(told(tmp_path, TRUCK, send=("Demand", "Faults"), address=1, name=1))
    assert truck == {"Faults has 20 bytes, and long messages of J1939 are not sent": True}
    assert [text for text, _ in told(tmp_path, TRUCK, send=("Demand",))] == [
        "Demand is of J1939: give address and name, with which it is sent"
    ]
    assert ("Lights has no cycle time: it is sent when a value comes, and not repeated", False) in told(
        tmp_path, send=("Lights",), cycle=True
    )


def test_many_flaws_are_told_in_a_few_lines(tmp_path: Path) -> None:
    signal = ' SG_ {} : 0|8@1+ (1,0) [0|0] "" X\n'
    body = "".join(f"BO_ {n} M{n}: 8 X\n{signal.format('A')}{signal.format('B')}\n" for n in range(25))
    found = told(tmp_path, f'VERSION ""\nBU_: X\n{body}')
    assert len(found) == 11
    assert found[-1] == ("and 15 more like these", False)


def test_a_fault_of_the_file_is_told_at_its_line(tmp_path: Path) -> None:
    one = record(tmp_path, "\nBO_ 512 x Gearbox: 2 TCM\n")
    (problem,) = one.problems()
    assert problem.where is not None
    assert (problem.where.file, problem.where.line, problem.is_error) == (one.file, 2, True)
    assert told(tmp_path, CAR.replace("BO_ 512 G", "BO_ 512 x G")) == [
        ("line 16: BO_ 512 x Gearbox: 2 TCM: column 11: expected a colon: left out, with its signals", False)
    ]


def test_what_a_file_says_moves_no_cursor(tmp_path: Path) -> None:
    for text in (CAR.replace('VERSION ""', 'VERSION "" \x1b[2J'), CAR.replace("BO_ 512", "\u202eBO_ 512")):
        found = list(record(tmp_path, text).problems())
        assert found
        assert all(problem.text.isprintable() for problem in found)


def test_a_missing_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cantools.database", None)
    one = record(tmp_path, CAR + "\n")
    assert [(p.text.partition(".dbc ")[2], p.is_error) for p in one.problems()] == [
        ("is not checked: cantools is missing: pip install 'buscoupler[dbc]'", False)
    ]
    assert list(one.names()) == []


def test_what_is_repeated_is_known(tmp_path: Path) -> None:
    found = {one.name: (one.period_s, one.item) for one in record(tmp_path).cycles()}
    assert found == {
        "EngineData": (0.01, (0x100, bytes(8), 0)),
        "Gearbox": (0.02, (0x200, bytes(2), 0)),
        "Command": (0.05, (0x400, bytes(4), 0)),
    }
