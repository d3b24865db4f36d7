"""The quantities of a topology, under the patterns that their values have on buses."""

from pathlib import Path
from typing import Any

import pytest

from bridges.protocols import PROTOCOLS
from bus.quantity.telling import line
from bus.schema import settings
from bus.wire.notation import text_of
from tests.topologies.support import GATEWAY
from topologies.loading.loader import loads
from topologies.quantities import quantities

SIGNAL = ' SG_ Rpm : 0|16@1+ (1,0) [0|9000] "rpm" X\n'


def test_patterns_are_those_behind_the_front_of_a_side(tmp_path: Path) -> None:
    path = tmp_path / "engine.dbc"
    path.write_text(f'VERSION ""\nBU_: X\nBO_ 5 Engine: 8 X\n{SIGNAL}')
    side = f"can: {{channel: can0}}, protocol: {{dbc: {{file: {path}, j1939: true}}}}"
    text = f"{GATEWAY}buses: {{p: {{on: gw}}}}\nbridges: {{b: {{on: gw, join: [bus: p, {{{side}}}"
    assert [line(one) for one in quantities(loads(f"{text}]}}}}"))] == ["can/Engine/Rpm  rpm  0 to 9000"]
    path.write_text(f'VERSION ""\nBU_: X\nBO_ 2364540158 EEC1: 8 X\n{SIGNAL}')
    renamed = loads(f"{text[:-1]}, prefix: [hall, 3]}}]}}}}")
    (one,) = quantities(renamed)
    assert one.pattern == ("hall", 3, "can", "EEC1", 254, "Rpm")
    assert one.any_at == 4


@pytest.mark.parametrize(
    ("words", "named", "usual"),
    [
        ("rename: {can/EEC1/0: main}", {"main/Rpm"}, ("can", "EEC1", 254, "Rpm")),
        (
            "rename: {can/EEC1/0x03: trim, can/EEC1/254: e}",
            {"trim/Rpm", "e/Rpm"},
            ("can", "EEC1", 254, "Rpm"),
        ),
        ("prefix: car, rename: {can/EEC1/0/Rpm: rpm}", {"car/rpm"}, ("car", "can", "EEC1", 254, "Rpm")),
        ("strip: can, rename: {EEC1: e, EEC1/7: e7}", {"e7/Rpm"}, ("e", 254, "Rpm")),
        ("rename: {can/Other/0: main}", set(), ("can", "EEC1", 254, "Rpm")),
        ("strip: 3", set(), ("Rpm",)),
        ("prefix: car", set(), ("car", "can", "EEC1", 254, "Rpm")),
    ],
)
def test_one_source_that_a_side_renames_has_the_unit_of_all(
    tmp_path: Path, words: str, named: set[str], usual: tuple[str | int, ...]
) -> None:
    """Values of a source with a name of its own had no unit, and were on no page and in no metric."""
    path = tmp_path / "engine.dbc"
    path.write_text(f'VERSION ""\nBU_: X\nBO_ 2364540158 EEC1: 8 X\n{SIGNAL}')
    side = f"can: {{channel: can0}}, protocol: {{dbc: {{file: {path}, j1939: true}}}}, {words}"
    text = f"{GATEWAY}buses: {{p: {{on: gw}}}}\nbridges: {{b: {{on: gw, join: [bus: p, {{{side}}}]}}}}"
    *singled, every = quantities(loads(text))
    assert {text_of(one.pattern) for one in singled} == named
    assert all(one.any_at is None and one.unit == "rpm" for one in singled)
    assert (every.pattern, every.any_at) == (usual, len(usual) - 2 if 254 in usual else None)


def test_each_protocol_has_a_word_for_what_may_be_any(tmp_path: Path) -> None:
    path = tmp_path / "engine.dbc"
    path.write_text(f'VERSION ""\nBU_: X\nBO_ 2364540158 EEC1: 8 X\n{SIGNAL}')
    known = [kind for _, kind in PROTOCOLS.known() if "quantities" in vars(kind)]
    given: dict[str, dict[str, Any]] = {"dbc": {"file": str(path)}, "nmea": {"values": True}}
    found = set[str]()
    for kind in known:
        if any(one.required for one in settings(kind).values()) and kind.key not in given:
            continue
        some = [one for one in kind(**given.get(kind.key, {})).quantities() if one.any_at is not None]
        found |= {one.any_word for one in some}
        for one in some:
            assert one.any_word in line(one).split()[0].split("/")
    assert found == {"SOURCE", "TALKER", "CHANNEL"}
