"""The names that a topology knows, and what `check` says about them."""

from pathlib import Path

import pytest

from bus.errors import TopologyError
from tests.topologies.support import GATEWAY, PAIR, errors, findings, warnings
from topologies.checks.checker import check, check_wired
from topologies.loading.loader import load, loads
from topologies.names import known
from topologies.resolved.resolve import resolve_all
from topologies.wiring.segments import wired

TWINS = ("axjgjz", "ziieqj")  # one token
TWO = PAIR + "buses: {p: {on: a, listen: 'tcp://0.0.0.0:1'}, q: {on: a, listen: 'tcp://0.0.0.0:2'}}\n"
BRIDGE = """
bridges:
  x:
    on: a
    pattern: [alpha]
    rates: [{pattern: [beta, 7], frames_per_s: 1}]
    join:
      - {bus: p, allow: {in: [[gamma, delta]]}, deny: [epsilon]}
      - {bus: q, pattern: [zeta]}
devices: {tap: {on: a, tap: p, directory: /tmp/x, pattern: [eta]}}
"""


def test_names_in_patterns_are_known_without_a_list() -> None:
    wanted = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"}
    assert set(known(loads(TWO + BRIDGE))) == wanted


def test_a_list_of_names_and_patterns() -> None:
    assert known(loads(GATEWAY + "names: [fridge, [door, temp], 7, fridge]")) == ["fridge", "door", "temp"]
    assert known(loads(GATEWAY + "names: {list: [fridge]}")) == ["fridge"]
    assert known(loads(GATEWAY)) == []


def test_a_file_beside_the_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plant").mkdir()
    (tmp_path / "plant" / "names.txt").write_text("# ours\nfridge/temp  # in degrees\n\ndoor\n")
    file = tmp_path / "plant" / "plant.yaml"
    file.write_text(GATEWAY + "names: {file: names.txt, list: [lamp]}")
    monkeypatch.chdir("/")
    assert known(load(file)) == ["lamp", "fridge", "temp", "door"]


def test_gateways_have_the_names_that_were_checked_and_no_newer_ones(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("door\n")
    file = tmp_path / "plant.yaml"
    file.write_text(TWO + "names: {file: names.txt}")
    wiring = wired(load(file))
    check_wired(wiring)
    (tmp_path / "names.txt").write_text("other\n")
    assert [gateway.listed for gateway in resolve_all(wiring)] == [("door",), ("door",)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "cannot read the names: No such file or directory"),
        (b"\xff", "not UTF-8 text"),
        (b"a//b\n", "a part between slashes is empty"),
        (b"x" * ((1 << 20) + 1), "more than 1048576 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_check(
    tmp_path: Path, content: bytes | None, text: str
) -> None:
    if content is not None:
        (tmp_path / "names.txt").write_bytes(content)
    file = tmp_path / "plant.yaml"
    file.write_text(TWO + "names: {file: names.txt}")
    topology = load(file)
    (found,) = (finding for finding in check(topology) if "names.txt" in finding.text)
    assert (found.level, found.line) == ("error", 4)
    assert text in found.text
    with pytest.raises(TopologyError, match=r"names\.txt"):
        known(topology)


def test_a_file_alone_is_no_list() -> None:
    (found,) = findings(GATEWAY + "names: plant-names.txt")
    assert found.text == 'expected a list, found the text "plant-names.txt"'


def test_listed_names_with_one_token_are_a_warning() -> None:
    one, other = TWINS
    shared = [text for text in warnings(TWO + f"names: [{one}, {other}]") if "one token" in text]
    assert len(shared) == 1
    assert f"'{one}', '{other}' are one token, 0x" in shared[0]
    beside = BRIDGE.replace("alpha", one) + f"names: [{other}]"
    assert ["one token" in text for text in warnings(TWO + beside)].count(True) == 1
    assert not [text for text in errors(TWO + beside) if "one token" in text]


def test_names_in_patterns_with_one_token_are_an_error() -> None:
    both = BRIDGE.replace("alpha", TWINS[0]).replace("zeta", TWINS[1]) + f"names: [{TWINS[0]}]"
    assert ["one token" in text for text in errors(TWO + both)].count(True) == 1
    assert not [text for text in warnings(TWO + both) if "one token" in text]
