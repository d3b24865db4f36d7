"""A topology file to a `Topology`: one generic reader, driven by the annotations of the model.

Nothing here knows a key of the file by name. Every error is found, not the first.
"""

import math
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bus.schema import Node as Record
from bus.schema import OneOf, Ref, Single, Where, alternatives, problem, settings, unwrap
from topologies.document import CHARACTERS_MAX, describe, parse, where
from topologies.findings import Finding, InvalidTopology, error, nearest
from topologies.model import Topology

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_TAGS = {bool: ("bool",), int: ("int",), float: ("float", "int"), str: ("str",)}
_construct = SafeConstructor()


class _Wrong:
    """Stands where a value could not be read; the finding is already written."""


WRONG = _Wrong()


class _Reference(NamedTuple):
    section: str
    name: str
    place: Where


def load(path: str | Path) -> Topology:
    """The topology in a file. Raises `InvalidTopology` (a `TopologyError`) with every finding."""
    try:
        with open(path, "rb") as file:
            data = file.read(4 * CHARACTERS_MAX + 1)
        text = data.decode()
    except OSError as e:
        raise InvalidTopology([error(Where(str(path)), f"cannot read: {e.strerror}")]) from None
    except UnicodeDecodeError as e:
        line = data[: e.start].count(b"\n") + 1
        raise InvalidTopology([error(Where(str(path), line, 1), "not UTF-8 text")]) from None
    return loads(text, str(path))


def loads(text: str, name: str = "<text>") -> Topology:
    """The topology in a text; `name` stands for the file in findings. Raises as `load` does."""
    root, findings = parse(text, name)
    if root is None:
        raise InvalidTopology(findings)
    reader = _Reader(name, findings)
    topology = reader.read(root, Topology, "")
    reader.resolve(root)
    if findings or not isinstance(topology, Topology):
        raise InvalidTopology(findings)
    return topology


class _Reader:
    def __init__(self, file: str, findings: list[Finding]) -> None:
        self._file = file
        self._findings = findings
        self._references: list[_Reference] = []

    def _wrong(self, node: Node, path: str, text: str) -> _Wrong:
        self._findings.append(error(where(node, self._file, path), text))
        return WRONG

    def read(self, node: Node, annotation: Any, path: str) -> Any:
        """The value of a node, or WRONG with a finding."""
        bare, markers = unwrap(annotation)
        single = any(isinstance(m, Single) or m is Single for m in markers)
        value = self._read_bare(node, bare, path, single)
        for marker in markers if value is not WRONG else ():
            if text := self._judge(marker, value, node, path):
                return self._wrong(node, path, text)
        return value

    def _judge(self, marker: Any, value: Any, node: Node, path: str) -> str:
        if isinstance(marker, Ref):
            self._references.append(_Reference(marker.section, value, where(node, self._file, path)))
        return problem(marker, value)

    def _read_bare(self, node: Node, bare: Any, path: str, single: bool) -> Any:
        if isinstance(bare, type) and issubclass(bare, Record):
            return self._read_dataclass(node, bare, path)
        origin = get_origin(bare)
        if origin in (Union, types.UnionType):
            return self._read_union(node, get_args(bare), path)
        if origin is tuple:
            return self._read_list(node, get_args(bare)[0], path, single)
        if origin is Mapping:
            return self._read_mapping(node, get_args(bare), path)
        if origin is Literal:
            return self._read_choice(node, get_args(bare), path)
        return self._read_scalar(node, (bare,), path)

    def _read_union(self, node: Node, options: Sequence[Any], path: str) -> Any:
        wanted = [option for option in options if option is not type(None)]
        if len(wanted) < len(options) and _is_null(node):
            return None
        if len(wanted) == 1:
            return self.read(node, wanted[0], path)
        return self._read_scalar(node, wanted, path)

    def _read_list(self, node: Node, item: Any, path: str, single: bool) -> Any:
        if single and not isinstance(node, SequenceNode) and not _is_null(node):
            value = self.read(node, item, path)
            return WRONG if value is WRONG else (value,)
        if not isinstance(node, SequenceNode):
            return self._wrong(node, path, f"expected a list, found {describe(node)}")
        values = [self.read(child, item, f"{path}[{i}]") for i, child in enumerate(node.value)]
        return WRONG if any(value is WRONG for value in values) else tuple(values)

    def _read_mapping(self, node: Node, types: Sequence[Any], path: str) -> Any:
        key_type, value_type = types
        if not isinstance(node, MappingNode):
            return self._wrong(node, path, f"expected a mapping, found {describe(node)}")
        pairs = {}
        for key, child in node.value:
            name = self._read_key(key, path)
            if name is not None:
                inner = _join(path, name)
                named = self._name(key, name, key_type, inner)
                value = self.read(child, value_type, inner)
                pairs[name] = WRONG if named is WRONG else value
        return WRONG if any(value is WRONG for value in pairs.values()) else pairs

    def _name(self, key: Node, name: str, key_type: Any, path: str) -> Any:
        for marker in unwrap(key_type)[1]:
            if text := self._judge(marker, name, key, path):
                return self._wrong(key, path, text)
        return name

    def _read_key(self, key: Node, path: str) -> str | None:
        if isinstance(key, ScalarNode):
            return str(key.value)  # as written: `on` is a key here, though YAML 1.1 calls it true
        self._wrong(key, path, f"a key must be text, found {describe(key)}")
        return None

    def _read_dataclass(self, node: Node, cls: type[Record], path: str) -> Any:
        known, choice = settings(cls), alternatives(cls)
        if not isinstance(node, MappingNode):
            return self._read_short(node, cls, path)
        values, given, good = dict[str, Any](), list[str](), True
        for key, child in node.value:
            name = self._read_key(key, path)
            found = name and self._meant(key, name, cls, path)
            if not name or not found:
                good = False
                continue
            given.append(name)
            values[found[0]] = self.read(child, found[1], _join(path, name))
        missing = [key for key, one in known.items() if one.required and one.field.name not in values]
        for key in missing:
            self._wrong(node, path, f'"{key}" is missing')
        good = good and not missing and not any(value is WRONG for value in values.values())
        if good and choice and (text := _unlike_one(choice[1], given, known)):
            return self._wrong(node, path, text)
        return self._build(node, cls, values, path) if good else WRONG

    def _meant(self, key: Node, name: str, cls: type[Record], path: str) -> tuple[str, Any] | None:
        """Field and annotation of a key of `cls`; None, with a finding, where it has no such key."""
        known, choice = settings(cls), alternatives(cls)
        if name in known:
            return known[name].field.name, known[name].annotation
        try:
            if choice and (kind := choice[1].kinds.find(name)):
                return choice[0], kind
        except ValueError as e:
            self._wrong(key, _join(path, name), str(e))
            return None
        words = [*known, *(choice[1].kinds.all() if choice else ())]
        self._wrong(key, _join(path, name), f'unknown key "{name[:64]}"{nearest(name, words)}')
        return None

    def _read_short(self, node: Node, cls: type[Record], path: str) -> Any:
        """A value alone, where the class says which field it stands for; nothing, where none is needed."""
        known = settings(cls)
        if _is_null(node) and not any(one.required for one in known.values()):
            return self._build(node, cls, {}, path)
        short = cls.SHORT
        if not short or _is_null(node):
            return self._wrong(node, path, f"expected a mapping, found {describe(node)}")
        value = self.read(node, known[short].annotation, path)
        if value is WRONG:
            return WRONG
        missing = [key for key, one in known.items() if one.required and one.field.name != short]
        if missing:
            return self._wrong(node, path, f"write a mapping: {', '.join(missing)} must be given too")
        return self._build(node, cls, {short: value}, path)

    def _build(self, node: Node, cls: type, values: dict[str, Any], path: str) -> Any:
        try:
            return cls(where=where(node, self._file, path), **values)
        except ValueError as e:
            return self._wrong(node, path, str(e))

    def _read_choice(self, node: Node, choices: Sequence[str], path: str) -> Any:
        if isinstance(node, ScalarNode) and node.value in choices:
            return node.value
        return self._wrong(node, path, f"expected {' or '.join(choices)}, found {describe(node)}")

    def _read_scalar(self, node: Node, wanted: Sequence[Any], path: str) -> Any:
        scalar = isinstance(node, ScalarNode) and node.tag.startswith("tag:yaml.org,2002:")
        kind = node.tag.rpartition(":")[2] if scalar else ""
        for option in (unwrap(w)[0] for w in wanted):
            if kind in _TAGS[option] and isinstance(node, ScalarNode):
                return self._construct(node, option, path)
        words = " or ".join(_WORDS[unwrap(w)[0]] for w in wanted)
        quote = (
            "; put it in quotes" if str in wanted and kind in ("int", "float", "bool", "timestamp") else ""
        )
        return self._wrong(node, path, f"expected {words}, found {describe(node)}{quote}")

    def _construct(self, node: ScalarNode, wanted: type, path: str) -> Any:
        try:
            if wanted is str:
                return str(node.value)
            make = {bool: _construct.construct_yaml_bool, int: _construct.construct_yaml_int}
            number = (
                _construct.construct_yaml_float
                if node.tag.endswith(":float")
                else make.get(wanted, make[int])
            )
            value = wanted(number(node))
        except (ValueError, OverflowError, KeyError, IndexError, ConstructorError):
            return self._wrong(node, path, f"{describe(node)} cannot be read as {_WORDS[wanted]}")
        if wanted is float and not math.isfinite(value):
            return self._wrong(node, path, "the number must be finite")
        return value

    def resolve(self, root: Node) -> None:
        """Find the names that nothing in the file answers to."""
        sections = _section_names(root)
        for section, name, place in self._references:
            names = [known for part in section.split() for known in sections.get(part, ())]
            if name not in names:
                thing = {"gateways": "gateway", "buses": "bus", "buses bridges": "bus or bridge"}[section]
                self._findings.append(error(place, f'no {thing} "{name[:64]}"{nearest(name, names)}'))


def _section_names(root: Node) -> dict[str, list[str]]:
    """Section to the names in it, from the text: an entry with an error in it is still there to refer to."""
    pairs = root.value if isinstance(root, MappingNode) else []
    return {
        section.value: [key.value for key, _ in body.value if isinstance(key, ScalarNode)]
        for section, body in pairs
        if isinstance(section, ScalarNode) and isinstance(body, MappingNode)
    }


def _unlike_one(choice: OneOf, given: list[str], known: Mapping[str, Any]) -> str:
    """The finding unless exactly one of the alternatives is given; "" if it is."""
    return choice.problem([key for key in given if key in choice.beside or key not in known])


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _join(path: str, name: str) -> str:
    return f"{path}.{name[:64]}" if path else name[:64]
