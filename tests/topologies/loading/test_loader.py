"""The strict reader: right values from right files, and every error with its place in wrong ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.media.can.medium import Can
from bridges.media.i2c.medium import I2c
from bridges.media.uart.medium import Uart
from bus.errors import TopologyError
from tests.helpers import ROOT
from tests.topologies.support import GATEWAY, findings, said
from topologies.checks.checker import check
from topologies.findings import InvalidTopology
from topologies.loading.document import CHARACTERS_MAX
from topologies.loading.loader import load, loads
from topologies.model import Dial, Filter, Shed
from topologies.picture.show import show

EXAMPLES = sorted(ROOT.glob("topologies/*.yaml"))
BUS = GATEWAY + "buses: {plant: {on: gw}}\n"


def side(text: str) -> str:
    return BUS + f"bridges:\n  b:\n    on: gw\n    join:\n      - bus: plant\n      - {text}\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads(path: Path) -> None:
    assert load(path).name == path.stem


def test_the_design_example_means_what_it_says() -> None:
    cold = load(next(path for path in EXAMPLES if path.stem == "cold-chain"))
    fridge, panel = cold.bridges["fridge"], cold.bridges["panel"]
    trunk = cold.buses["hall-a"].listen[1]
    assert (trunk.url, trunk.trunk) == ("tls+tcp://0.0.0.0:5556", True)
    assert trunk.tls == cold.brokers["spare"].listen[0].tls
    assert fridge.on == ("gw-a", "gw-b")
    assert fridge.pattern == ("fridge",)
    assert [fridge.at(gateway)[0].bus for gateway in fridge.on] == ["hall-a", "hall-b"]
    can = fridge.at("gw-a")[1]
    assert can.medium == Can(channel="can0", fd=True, bitrate=500_000, data_bitrate=2_000_000)
    assert can.shed == Shed(policy="conflate", age_ms=500)
    assert panel.on == ("gw-b",)
    assert [s.kind for s in panel.at("gw-b")] == ["bus", "uart", "i2c", "multicast"]
    assert panel.at("gw-b")[2].medium == I2c(bus=1, targets=(0x42,), poll_ms=5)


def test_a_value_alone_stands_for_its_main_field() -> None:
    topology = loads(side("{uart: /dev/ttyS0, shed: oldest, deny: [[a, 1], b]}"))
    joined = topology.bridges["b"].at("gw")[1]
    assert joined.medium == Uart(port="/dev/ttyS0")
    assert joined.shed == Shed(policy="oldest")
    assert joined.deny == Filter(both=(("a", 1), ("b",)))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("fridge/temp", ("fridge", "temp")),
        ("[fridge, temp]", ("fridge", "temp")),
        ("fridge", ("fridge",)),
        ("fridge/7", ("fridge", 7)),
        ("""'fridge/"7"'""", ("fridge", "7")),
        ("'7'", ("7",)),
        ("7", (7,)),
        ("0x1f", (31,)),
        ("/", ()),
        ("[]", ()),
    ],
)
def test_a_pattern_is_written_as_on_the_command_line_or_as_a_list(
    pattern: str, names: tuple[int | str, ...]
) -> None:
    topology = loads(
        BUS
        + f"bridges:\n  b:\n    on: gw\n    pattern: {pattern}\n"
        + f"    rates: [{{pattern: {pattern}, frames_per_s: 1}}]\n"
        + f"    join: [{{bus: plant, pattern: {pattern}}}, {{uart: /dev/x, allow: {{in: [{pattern}]}}}}]\n"
        + f"devices: {{d: {{on: gw, tap: plant, directory: /d, pattern: {pattern}}}}}\n"
    )
    bridge = topology.bridges["b"]
    assert bridge.pattern == bridge.rates[0].pattern == bridge.at("gw")[0].pattern == names
    assert list(topology.devices["d"].patterns()) == [names]
    assert bridge.at("gw")[1].allow.inward == (names,)


@pytest.mark.parametrize(
    ("allow", "patterns"),
    [
        ("fridge/temp", (("fridge", "temp"),)),
        ("[fridge/temp, pump]", (("fridge", "temp"), ("pump",))),
        ("[[fridge, temp], pump]", (("fridge", "temp"), ("pump",))),
        ("[fridge, temp]", (("fridge",), ("temp",))),
        ("/", ((),)),
    ],
)
def test_a_list_in_allow_is_a_list_of_patterns(allow: str, patterns: tuple[tuple[str, ...], ...]) -> None:
    assert loads(side(f"{{uart: /dev/x, allow: {allow}}}")).bridges["b"].at("gw")[1].allow.both == patterns


def test_a_bus_dials() -> None:
    topology = loads(GATEWAY + "buses: {p: {on: gw, dial: ['tcp://h:1', {url: 'ws://h:2/x', trunk: true}]}}")
    assert topology.buses["p"].dial == (Dial(url="tcp://h:1"), Dial(url="ws://h:2/x", trunk=True))


def test_an_unknown_key_has_place_path_and_nearest_word() -> None:
    assert said(side("can: {channel: can0, bitrat: 500000}")) == (
        't.yaml:9:30: error: bridges.b.join[1].can.bitrat: unknown key "bitrat"; did you mean "bitrate"?'
    )


def test_every_error_is_reported() -> None:
    text = (
        "name: on\ngateways:\n  gw-a: {node: 200}\nbuses:\n  plant: {on: gw-c, listen: [5, 'foo://x']}\n"
        "bridges:\n  b: {on: gw-a, join: [{bus: plnt}, {bus: plant, uart: /dev/x}]}\nbroker: {}\n"
    )
    assert [(f.line, f.path) for f in findings(text)] == [
        (1, "name"), (3, "gateways.gw-a.node"), (5, "buses.plant.on"), (5, "buses.plant.listen[0]"),
        (5, "buses.plant.listen[1]"), (7, "bridges.b.join[0].bus"), (7, "bridges.b.join[1]"), (8, "broker"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("a: [1", "not YAML"),
        ("a: 1\n\tb: 2", "not YAML"),
        ("--- {}\n--- {}\n", "single document"),
        ("5", "expected a mapping"),
        ("name: t", '"gateways" is missing'),
        ("name: t\ngateways: {}", "0 given"),
        ("name: a b\ngateways: {gw: }", "is no name"),
        ("name: \x00", "unprintable character #x0000"),
        (GATEWAY + "name: u", 'key "name" is repeated; it is on line 1'),
        (GATEWAY + "buses:", "expected a mapping, found nothing"),
        (GATEWAY + "buses: {p: {on: gv}}", 'no gateway "gv"; did you mean "gw"?'),
        (GATEWAY + "buses: {p: {on: gw, listen: 'tcp://h'}}", "has no port"),
        (GATEWAY + "buses: {p: {on: gw, listen: 'tcp://h:65536'}}", "is no port"),
        (GATEWAY + "buses: {p: {on: gw, listen: 'tcp://[::1:1'}}", "IPv6"),
        (GATEWAY + "buses: {p: {on: gw, listen: 'dial+tcp://h:1'}}", "write tcp://... under dial:"),
        (GATEWAY + "buses: {p: {on: gw, dial: 'tcp://0.0.0.0:1'}}", "name a host"),
        (GATEWAY + "buses: {p: {on: gw, listen: 'wss://h:1'}}", "needs tls"),
        (GATEWAY + "buses: {p: {on: gw, queue_bytes: 10}}", "at least message_bytes"),
        (GATEWAY + "buses: {p: {on: gw, trunks: [pp]}, pb: {on: gw}}", 'no bus "pp"; did you mean'),
        (GATEWAY + "buses: {p: {on: gw, trunks: [q, q]}, q: {on: gw}}", "listed twice in trunks"),
        (GATEWAY + "buses: {p: {on: gw, listen: !x 'tcp://h:1'}}", "!x value"),
        (GATEWAY + "? [a]\n: 1", "a key must be text"),
        *(
            (GATEWAY + f"buses: {{p: {{on: gw, queue_bytes: {number}}}}}", "cannot be read as a whole number")
            for number in ("9" * 5000, "0x" + "f" * 5000)
        ),
        *(
            (GATEWAY + f"buses: {{p: {{on: gw, queue_bytes: {number}}}}}", "write the plain number")
            for number in ("0b" + "1" * 20_000, "1" + ":59" * 100_000, "0" + "1" * 5000, "0x_")
        ),
        (side("uart: {port: /dev/x, baud: fast}"), 'a whole number, found the text "fast"'),
        (side("uart: {port: /dev/x, baud: 9600.5}"), "a whole number, found the number"),
        (side("uart: {port: /dev/x, rtscts: 1}"), "true or false"),
        (side("uart: {baud: 9600}"), '"port" is missing'),
        (side("can: {channel: c, data_bitrate: 1000000}"), "needs fd"),
        (side("can: {channel: c, options: {channel: d}}"), "belongs beside options"),
        (side("i2c: {bus: 1, targets: [0x78]}"), "out of range"),
        (side("multicast: {group: 10.0.0.1, port: 1, interface: eth0}"), "no multicast group"),
        (side("shed: oldest"), "found none"),
        (side("{uart: /dev/x, pattern: [yes]}"), "quotes"),
        (side("{uart: /dev/x, pattern: [4294967296]}"), "is no token"),
        (
            side("{uart: /dev/x, pattern: [fridge/temp]}"),
            "is a pattern, and the list is the names of one: write fridge/temp in place of the list",
        ),
        (
            side("{uart: /dev/x, allow: [[fridge/temp, pump]]}"),
            "write fridge/temp/pump in place of the list, if it is one pattern",
        ),
        (side("{uart: /dev/x, pattern: fridge//temp}"), "a part between slashes is empty"),
        (side("{uart: /dev/x, pattern: fridge/#}"), "# is no wildcard here"),
        (side("{uart: /dev/x, pattern: '#'}"), "# is no wildcard here"),
        (side("{uart: /dev/x, deny: [fridge, +/temp]}"), "+ is no wildcard here"),
        (side("{uart: /dev/x, deny: [[fridge, +]]}"), "+ is no wildcard here"),
        (side("uart: /dev/x\n        pattern: #"), "expected a pattern, found nothing (# begins a comment)"),
        (side("{uart: /dev/x, shed: {policy: oldest, rate: .inf}}"), "finite"),
        (side("{bus: p, shed: oldest}"), "nothing waits for a bus"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    assert words in said(text)


def test_aliases_and_merges_work() -> None:
    text = GATEWAY + "buses: {p: &p {on: gw, queue_bytes: 2000000}, q: {<<: *p, message_bytes: 9}, r: *p}"
    buses = loads(text).buses
    assert (buses["q"].queue_bytes, buses["q"].message_bytes) == (2_000_000, 9)
    assert buses["r"] == buses["p"]


def test_a_merged_key_may_be_overridden_and_its_own_repeat_may_not() -> None:
    text = GATEWAY + "buses: {p: &p {on: gw, message_bytes: 9}, q: {<<: *p, message_bytes: 8%s}}"
    assert loads(text % "").buses["q"].message_bytes == 8
    assert "is repeated" in said(text % ", message_bytes: 7")


def test_aliases_are_bounded() -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "aliases counted" in said(laughs)
    assert "inside its own anchor" in said("a: &a [*a]")
    assert "inside its own anchor" in said("a: &a {<<: *a}")


def test_depth_and_length_are_bounded(tmp_path: Path) -> None:
    assert "nested deeper" in said("[" * 100_000)
    assert "nested deeper" in said("{a: " * 5_000)
    assert "longer than" in said("#" * (CHARACTERS_MAX + 1))
    (tmp_path / "big.yaml").write_bytes(b"#" * (5 * CHARACTERS_MAX))
    with pytest.raises(TopologyError, match="longer than"):
        load(tmp_path / "big.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="cannot read: No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(TopologyError, match="cannot read"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: t\nx: \xe4")
    with pytest.raises(TopologyError, match=r"latin.yaml:2:1: error: not UTF-8"):
        load(tmp_path / "latin.yaml")


def only_findings(text: str) -> None:
    """Check that reading a text, and using an accepted topology, raises nothing but findings."""
    if not findings(text):
        topology = loads(text)
        check(topology)
        show(topology)
        show(topology, "mermaid")


edits = st.tuples(st.integers(0, 2000), st.integers(0, 12), st.text(max_size=6))


@settings(max_examples=300)
@given(st.sampled_from(EXAMPLES), st.lists(edits, min_size=1, max_size=4))
def test_mangled_examples_give_findings_and_no_other_exception(
    path: Path, edits: list[tuple[int, int, str]]
) -> None:
    text = path.read_text()
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    only_findings(text)


words = st.sampled_from(
    ["{", "}", "[", "]", ",", ": ", "- ", "\n", "  ", "&a ", "*a", "<<: ", "!!int ", "!!float ", "|\n", "~",
     "name", "gateways", "on", "buses", "bridges", "join", "can", "channel", "0x", "1_", "-", "1:2", "'", '"',
     ".nan", "9" * 5000, "1e999", "2001-01-01", "shed", "tmq", "brokers", "subscribe", "tcp://", "tcp://a:1",
     "tcp://[", "ipc://\ud800"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(words, max_size=25).map("".join))
def test_word_salad_gives_findings_and_no_other_exception(text: str) -> None:
    only_findings(text)


scalars = st.sampled_from(
    ["1", "-1", "0x1g", "0b2", "1e999", "9" * 5000, ".nan", "on", "~", "[]", "{}", "[[]]", "{a: 1}",
     "!!int ''", "!!float x", "!!bool x", "!!int [1]", "1:2:3", "tcp://a:b", "tcp://[::1]:1", "tcp://\uff0fa:1",
     "'\\'", "'ipc://x'", "gw", "plant", "[gw-a, gw-b]"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.data(), scalars)
def test_a_wrong_value_anywhere_gives_findings_and_no_other_exception(
    data: st.DataObject, scalar: str
) -> None:
    lines = [line for line in data.draw(st.sampled_from(EXAMPLES)).read_text().split("\n") if ": " in line]
    n = data.draw(st.integers(0, len(lines) - 1))
    lines[n] = f"{lines[n].split(': ')[0]}: {scalar}"
    only_findings("\n".join(lines))


def test_a_bus_is_named_by_its_beacon_only_as_a_trunk() -> None:
    text = GATEWAY + 'buses:\n  plant: {on: gw, dial: [{url: "beacon://hall3/plant"%s}]}\n'
    (dial,) = loads(text % ", trunk: true").buses["plant"].dial
    assert dial == Dial(url="beacon://hall3/plant", trunk=True)
    assert "rings can form: write trunk: true" in said(text % "")


def test_nothing_listens_on_a_beacon() -> None:
    assert "this can be dialled only" in said(
        GATEWAY + 'buses:\n  plant: {on: gw, listen: "beacon://hall3/plant"}\n'
    )


def test_a_finding_is_one_line_without_what_moves_a_cursor() -> None:
    with pytest.raises(InvalidTopology) as caught:
        loads('name: "\\x1b[2J"\n"\\u009b1m\\n": 1\n')
    assert all(str(finding).isprintable() for finding in caught.value.findings)
    assert "\x1b" not in str(caught.value)
