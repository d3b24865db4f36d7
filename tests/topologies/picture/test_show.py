"""The pictures and the reference page."""

import re
from pathlib import Path

import pytest
import yaml

from bus.key_types import pattern_in
from bus.schema import Range, default_of, settings
from tests.helpers import ROOT
from topologies.loading.loader import load, loads
from topologies.model import Topology
from topologies.picture.show import place_of, show
from topologies.writing.reference import PAGE, _classes, _default, page

EXAMPLES = sorted(ROOT.glob("topologies/*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_text_names_everything_under_its_gateway(path: Path) -> None:
    topology = load(path)
    drawn = show(topology)
    for section in ("gateways", "brokers", "buses", "bridges", "devices"):
        for name in getattr(topology, section):
            assert re.search(rf"─ \w+ {re.escape(name)}\b", drawn)


def test_text_is_a_tree() -> None:
    assert show(load(EXAMPLES[-1])) == (
        "two-buses\n"
        "└─ gateway gw  127.0.0.1\n"
        "   ├─ bus left\n"
        "   │  └─ listen tcp://127.0.0.1:25101\n"
        "   └─ bus right\n"
        "      ├─ listen tcp://127.0.0.1:25102\n"
        "      └─ dial tcp://127.0.0.1:25101  (bus left)"
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_mermaid_draws_each_node_once_and_only_lines_between_drawn_ones(path: Path) -> None:
    lines = show(load(path), "mermaid").split("\n")
    drawn = [m[1] for line in lines if (m := re.match(r"  (?:subgraph )?(n\d+)[\[({]", line))]
    ends = [end for line in lines if (m := re.match(r"  (n\d+) \S+ (n\d+)$", line)) for end in m.groups()]
    assert lines[0] == "flowchart LR"
    assert len(drawn) == len(set(drawn))
    assert ends
    assert set(ends) <= set(drawn)
    assert sum(line.startswith("  subgraph") for line in lines) == lines.count("  end")


def test_mermaid_draws_the_example_of_the_page_to_read_first() -> None:
    assert show(load(ROOT / "topologies/field.yaml"), "mermaid").splitlines() == [
        "flowchart LR",
        '  subgraph n0["gw 127.0.0.1"]',
        '  n1(["bus shop"])',
        '  n2{{"bridge machines"}}',
        "  end",
        "  n2 --- n1",
        '  n3[/"uart /tmp/buscoupler-line-a 115200"/]',
        "  n2 --- n3",
        '  n4[/"can udp_multicast 239.74.163.2 FD 500000/2000000"/]',
        "  n2 --- n4",
    ]


def test_a_tmq_network_is_drawn_with_its_broker_and_what_the_bridge_wants_of_it() -> None:
    drawn = show(load(ROOT / "topologies/fridge.yaml"), "mermaid").splitlines()
    assert [line.strip() for line in drawn if "n3" in line] == [
        'n3[/"tmq main"/]',
        'n2 ---|"subscribe fridge/temp, fridge/light; publish fridge/alert"| n3',
        "n3 --- n1",
    ]
    assert '  n1["broker main"]' in drawn


def test_each_of_two_gateways_tells_its_place() -> None:
    topology = loads(
        "name: t\ngateways: {g: , h: , i: }\n"
        "bridges:\n  x: {on: [g, h], join: [uart: /dev/a, uart: /dev/b]}\n"
        "  y: {on: i, join: [uart: /dev/a, uart: /dev/b]}\n"
    )
    found = [place_of(topology, *one) for one in (("x", "g"), ("x", "h"), ("y", "i"))]
    assert found == ["1 of 2", "2 of 2", ""]


def test_mermaid_labels_cannot_break_out_of_their_quotes() -> None:
    text = "name: t\ngateways: {g: }\nbridges: {x: {on: g, join: [uart: '/dev/\"]<#', uart: /dev/b]}}"
    assert '"uart /dev/#quot;]#lt;#35; 115200"' in show(loads(text), "mermaid")


def test_the_reference_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run: make generated"


def test_numbers_are_written_in_full_and_sizes_in_bytes_too() -> None:
    assert "whole number, 1 to 1099511627776 (1 TiB)" in page()
    assert "`8388608` (8 MiB)" in page()
    assert "e+" not in page()
    assert str(Range(0.001, 86_400_000)) == "0.001 to 86400000"


def as_written(value: object) -> object:
    return [as_written(one) for one in value] if isinstance(value, tuple) else value


def test_each_default_on_the_reference_page_can_be_written_into_a_file() -> None:
    for cls in _classes(Topology):
        for key, one in settings(cls).items():
            cell = _default(one)
            if cell in ("", "**required**"):
                continue
            written = yaml.safe_load(cell.split("`")[1])
            value = default_of(one)
            if isinstance(value, tuple) and not isinstance(written, list):  # a pattern, or the like, as text
                assert written == "all" or pattern_in(written) in (value, *value), (cls, key)
            else:
                assert written == as_written(value), (cls, key)


def test_a_text_that_stands_for_a_list_is_a_pattern_only_where_it_is_one() -> None:
    _, _, raw = page().partition("## Raw\n")
    rows = {line.split(" | ")[0]: line for line in raw.partition("\n## ")[0].splitlines()}
    assert rows["| `root`"].startswith("| `root` | pattern | ")
    for key in ("receive", "send"):
        assert " | list of an identifier, a range or a mask; or as one text: " in rows[f"| `{key}`"]
    assert "Raises " not in page()
    assert re.findall(r"\ba [aeio]\w+", page()) == []


def test_the_reference_page_has_no_dead_link() -> None:
    text = page()
    heads = {line[3:].lower() for line in text.split("\n") if line.startswith("## ")}
    assert set(re.findall(r"\(#(\w+)\)", text)) <= heads


TMQ = "name: t\ngateways: {g: }\nbridges: {x: {on: g, join: [uart: /dev/b, %s]}}"


@pytest.mark.parametrize(
    ("patterns", "shown"),
    [("a", "a"), ("a, b, c", "a, b, c"), ("a, b, c, d", "a, b, c and 1 more"), ("", "nothing")],
)
def test_three_patterns_of_a_side_are_shown_and_others_are_counted(patterns: str, shown: str) -> None:
    topology = loads(TMQ % f"tmq: {{brokers: 'tcp://192.0.2.1:1', subscribe: [{patterns}]}}")
    assert f"subscribe {shown}  " in next(line for line in show(topology).split("\n") if "tmq" in line) + "  "
    assert f'|"subscribe {shown}"|' in show(topology, "mermaid")


LINES = """\
name: t
gateways: {g: , h: }
buses:
  p: {on: g, listen: {url: 'tcp://*:1', trunk: true}}
  q: {on: h, dial: [{url: 'tcp://127.0.0.1:1', trunk: true}, 'tcp://192.0.2.3:1']}
devices:
  t: {on: g, tap: p, directory: /x}
  l: {on: g, cache: p}
  o: {on: g, telemetry: p, to: 'http://192.0.2.4:4318'}
"""


def test_thick_lines_are_trunks_and_dotted_ones_are_of_devices_inside_their_bus() -> None:
    lines = show(loads(LINES), "mermaid").split("\n")
    ends = {m[1]: m[2] for line in lines if (m := re.match(r'  (n\d+)\W+"([^"]+)"', line))}
    drawn = [m.groups() for line in lines if (m := re.fullmatch(r"  (n\d+) (\S+) (n\d+)", line))]
    assert sorted((ends[one], arrow, ends[other]) for one, arrow, other in drawn) == [
        ("bus p", "---", "device l"),
        ("bus p", "-.->", "device o"),
        ("bus p", "-.->", "device t"),
        ("bus q", "-->", "tcp://192.0.2.3:1"),
        ("bus q", "==>", "bus p"),
    ]


def test_a_durable_trunk_says_so_in_each_picture() -> None:
    from topologies.picture.drawing import draw
    from topologies.picture.svg import svg

    text = """\
name: t
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2}}
buses:
  p: {on: a, listen: [{url: "tcp://0.0.0.0:5", trunk: true%s}]}
  q: {on: b, listen: tcp://0.0.0.0:6, trunks: [%s]}
"""
    kept = loads(text % (", durable: {directory: /k, for: [b, far]}", "{bus: p, durable: /j}"))
    assert "keeps for b (acknowledges after its fdatasync), far in /k" in show(kept)
    assert "keeps for a (acknowledges after its fdatasync) in /j" in show(kept)
    assert "==>|durable|" in show(kept, "mermaid")
    assert 'class="edge trunk durable' in svg(draw(kept))
    for one in (", durable: /k", "p"), ("", "{bus: p, durable: /j}"):
        assert "==>|durable|" in show(loads(text % one), "mermaid")
    plain = loads(text % ("", "p"))
    assert "keeps for" not in show(plain)
    assert "durable" not in show(plain, "mermaid") + svg(draw(plain))
