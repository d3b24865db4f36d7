"""The quantities of a topology, under the patterns that their values have on buses."""

from pathlib import Path

from bus.quantity.telling import line
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
