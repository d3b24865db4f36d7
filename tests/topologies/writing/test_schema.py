"""The JSON Schema accepts what the loader accepts, and refuses what has the wrong shape."""

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft7Validator
from yaml import SafeLoader, compose
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, SequenceNode

from appliance.commandline.cli import main
from tests.helpers import ROOT
from tests.topologies.bad import BAD
from topologies.findings import InvalidTopology
from topologies.loading.document import parse
from topologies.loading.loader import loads
from topologies.writing.schema import FILE, schema, text

# Those with MQTT have a medium that the shipped schema does not know.
SHIPPED = sorted(
    path
    for path in [*ROOT.glob("topologies/*.yaml"), *ROOT.glob("examples/*/*.yaml")]
    if "mqtt:" not in path.read_text()
)
SHAPE = re.compile(r"unknown key|missing|expected|out of range|given; it takes|is no name|one of|found none")
MUTATIONS = 600
Path = tuple[str | int, ...]


@cache
def validator() -> Draft7Validator:
    Draft7Validator.check_schema(schema())
    return Draft7Validator(schema())


def value_of(node: Node) -> Any:
    """Return what an editor sees: by YAML 1.2 keys such as `on` are text."""
    if isinstance(node, MappingNode):
        return {str(key.value): value_of(child) for key, child in node.value}
    if isinstance(node, SequenceNode):
        return [value_of(child) for child in node.value]
    return SafeConstructor().construct_object(node)


def read(source: str) -> Any:
    root = compose(source, SafeLoader)  # with variables as written: an editor does not replace them
    assert root is not None
    return value_of(root)


def is_valid(value: Any) -> bool:
    return bool(validator().is_valid(value))


def findings(source: str) -> list[str]:
    try:
        loads(source)
    except InvalidTopology as error:
        return [finding.text for finding in error.findings]
    return []


def test_the_shipped_file_is_what_the_classes_say() -> None:
    assert FILE.read_text() == text(), "run: make generated"


def test_the_command_prints_it_or_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "buscoupler topology"
    assert main(["schema", "--path"]) == 0
    assert capsys.readouterr().out.strip() == str(FILE)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_topology_fits(path: Any) -> None:
    assert not list(validator().iter_errors(read(path.read_text())))


HEAD = "name: t\ngateways: {a: {}, b: {}}\nbuses: {p: {on: a, listen: 'tcp://127.0.0.1:5'}}\n"


def side(words: str) -> str:
    return HEAD + f"bridges: {{j: {{on: [a, b], join: [{{bus: p}}, {{{words}}}]}}}}\n"


GOOD = {
    "variable": HEAD.replace("name: t", "name: ${NAME:-t}"),
    "variable for a number": side("uart: {port: /dev/a, baud: '${BAUD:-9600}'}"),
    "variable for a choice": side("uart: /dev/a, shed: '${POLICY:-oldest}'"),
    "nothing": HEAD.replace("a: {}", "a:"),
    "short record": side("uart: /dev/a, shed: oldest, allow: x/y"),
    "by gateway": side("uart: {port: {a: /dev/a, b: /dev/b}}"),
    "whole by gateway": side("uart: {a: /dev/a, b: {port: /dev/b}}"),
    "side by gateway": HEAD + "bridges: {j: {on: [a, b], join: [bus: p, {a: {uart: /x}, b: {uart: /y}}]}}\n",
    "patterns": side("uart: /dev/a, allow: {in: [x, [y, 1], z/2], out: q}"),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_loads_fits(name: str) -> None:
    assert findings(GOOD[name]) == []
    assert list(validator().iter_errors(read(GOOD[name]))) == []


WRONG = {
    "unknown key": HEAD + "busses: {}\n",
    "unknown key of a record": side("uart: {port: /dev/a, bauds: 1}"),
    "missing key": "name: t\n",
    "missing key of a record": HEAD + "bridges: {j: {on: a}}\n",
    "text for a number": side("uart: {port: /dev/a, baud: fast}"),
    "number for a text": side("uart: 5"),
    "text for true or false": HEAD.replace("'tcp://127.0.0.1:5'", "{url: 'tcp://127.0.0.1:5', trunk: 'x'}"),
    "list for a mapping": "name: t\ngateways: []\n",
    "mapping for a text": HEAD.replace("name: t", "name: {}"),
    "mapping for a list": HEAD + "events: {}\n",
    "nothing where a value is needed": HEAD.replace("name: t", "name:"),
    "out of range": side("uart: {port: /dev/a, baud: 0}"),
    "no choice": side("uart: /dev/a, shed: middle"),
    "too few": HEAD + "bridges: {j: {on: a, join: [{bus: p}]}}\n",
    "no name in a pattern": side(
        "uart: /dev/a, protocol: {modbus: {registers: [{register: 0, pattern: []}]}}"
    ),
    "too many": HEAD + f"events: [{', '.join(['p'] * 65)}]\n",
    "no name": HEAD.replace("name: t", "name: a b"),
    "no name for a key": HEAD.replace("a: {}", "a b: {}"),
    "no side": side("trunk: true"),
    "two sides": side("uart: /dev/a, can: can0"),
    "no device": HEAD + "devices: {d: {on: a}}\n",
    "two devices": HEAD + "devices: {d: {on: a, tap: p, cache: p}}\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_each_error_of_shape_that_the_loader_finds_is_one_here(name: str) -> None:
    assert findings(WRONG[name])
    assert not is_valid(read(WRONG[name]))


def test_the_list_of_bad_topologies_has_no_error_of_shape_that_is_missed() -> None:
    missed = []
    for name, bad in BAD.items():
        found = parse(bad.text, "t", {})
        said = findings(bad.text)
        if found.root is not None and not found.findings and any(map(SHAPE.search, said)):
            missed += [name] if is_valid(value_of(found.root)) else []
    assert missed == []


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in pairs:
        yield from places(child, (*path, key))


def mutated(value: Any, path: Path, chance: random.Random) -> Any:
    """Return a copy with the value at a path replaced, left out, or given a key that nobody knows."""
    if not path:
        if isinstance(value, dict) and chance.random() < 0.5:
            return {**value, "unknown-key": 1}
        return chance.choice([7, -1, "x", [], {}, None, True, 2.5, [[1]], {"x": 1}])
    key, rest = path[0], path[1:]
    copy = dict(value) if isinstance(value, dict) else list(value)
    if not rest and isinstance(copy, dict) and chance.random() < 0.3:
        del copy[key]
    else:
        copy[key] = mutated(value[key], rest, chance)  # type: ignore[index]
    return copy


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_of_mutated_topologies_only_wrong_ones_are_refused_and_wrong_shapes_all(path: Any) -> None:
    """What is refused here does not load; what the loader refuses for its shape is refused here."""
    chance, whole = random.Random(path.stem), read(path.read_text())
    every = list(places(whole))
    for _ in range(MUTATIONS // len(SHIPPED)):
        changed = mutated(whole, chance.choice(every), chance)
        source = json.dumps(changed, indent=1)
        said = findings(source)
        assert said or is_valid(changed), f"refused, but it loads: {source}"
        wrong = [line for line in said if SHAPE.search(line) and "gateway" not in line]
        assert not (wrong and is_valid(changed)), f"{wrong}: {source}"


def test_a_file_is_read_as_an_editor_reads_it() -> None:
    assert read("{on: 1, off: 0x10, n: '${A}'}") == {"on": 1, "off": 16, "n": "${A}"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_editors_find_the_schema_by_the_first_line(path: Any) -> None:
    first = path.read_text().partition("\n")[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("=")[2]).resolve() == FILE.resolve()
