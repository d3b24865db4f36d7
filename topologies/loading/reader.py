"""Reading of YAML nodes into the records of the model, by one generic reader that annotations drive.

No key of the file is named here. The reader reports all errors, not only the first.
"""

import types
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, Union, get_args, get_origin

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bus.elsewhere import known_elsewhere
from bus.key_types import check_signs
from bus.schema import (
    AnyText,
    ByGateway,
    Called,
    KindOf,
    Notation,
    Owned,
    Record,
    Ref,
    Single,
    Table,
    alternatives,
    problem,
    settings,
    unwrap,
)
from bus.text import nearest
from bus.wire.identifier import identifier_in
from topologies.findings import Finding, error
from topologies.loading.brackets import whole_in
from topologies.loading.document import describe, where
from topologies.loading.levels import holder_of, home_of, written_beside
from topologies.loading.mappings import (
    called_among,
    called_of,
    is_choice,
    is_mapping,
    kind_among,
    meant_before,
    slip_in,
    wrong_keys,
)
from topologies.loading.meant import hinted
from topologies.loading.references import References
from topologies.loading.scalars import TAGS, WORDS, constructed, is_null, kind_of, kinds_of, unclear_in


class Reader:
    """A reader of nodes into values. A value is meaningless if there is a finding in it. Names that stand for
    something else in the file are noted in `references`, to be looked up at the end.

    `gateways` are those of the file. While a value is read that may differ between gateways, `_at` is the
    gateway for which it is read, None otherwise; `_on` are the gateways of its record.
    """

    def __init__(self, file: str, findings: list[Finding], gateways: Collection[str]) -> None:
        self._file = file
        self._findings = findings
        self.references = References()
        self._gateways = gateways
        self._on: tuple[str, ...] = ()
        self._at: str | None = None
        self._differs = False
        self._outside = list[tuple[type[Record], str]]()  # records around what is read, and its keys there
        self._owned = ""  # the path of the value that is read and could be given by gateway

    def _wrong(self, node: Node, path: str, text: str) -> None:
        self._findings.append(error(where(self._file, node.start_mark, path), text))

    def _unlike(self, node: Node, path: str, words: str, hint: str = "") -> None:
        """Add a finding: the node is not what was expected, in `words`."""
        if self._at is not None and isinstance(node, MappingNode):
            hint = f"; a value by gateway has the keys {', '.join(self._on)}"
        elif isinstance(node, MappingNode) and self._names_gateways(node):
            hint = "; it is the same on all gateways: a variable, ${NAME}, can differ between machines"
            if self._owned and path.startswith(f"{self._owned}."):
                whole, key = self._owned.rpartition(".")[2], path.rpartition(".")[2]
                named = node.value[0][0].value
                hint = f"; the gateways stand one level up: {whole}: {{{named}: {{{key}: ...}}, ...}}"
        self._wrong(node, path, f"expected {words}, found {describe(node)}{hint}")

    def _names_gateways(self, node: MappingNode) -> bool:
        keys = [key.value for key, _ in node.value if isinstance(key, ScalarNode)]
        return bool(keys) and all(key in self._gateways for key in keys)

    def read(self, node: Node, annotation: Any, path: str) -> Any:
        """Return the value of a node; it is meaningless if the node has a finding."""
        if (
            self._at is not None
            and isinstance(node, MappingNode)
            and is_choice(node, annotation, self._gateways)
        ):
            return self._read_chosen(node, annotation, path, self._at)
        bare, markers = unwrap(annotation)
        before = len(self._findings)
        value = self._read_bare(node, bare, path, markers)
        if len(self._findings) == before:
            self._judge(markers, value, node, path)
        return value

    def _judge(self, markers: Sequence[Any], value: Any, node: Node, path: str) -> None:
        """Add a finding for the first marker that forbids `value`. Note references, to be looked up later."""
        for marker in markers:
            if isinstance(marker, Ref) and marker.is_name(value):
                self.references.note(marker, value, where(self._file, node.start_mark, path))
            elif text := problem(marker, value):
                return self._wrong(node, path, text)

    def _read_bare(self, node: Node, bare: Any, path: str, markers: Sequence[Any]) -> Any:
        if isinstance(bare, type) and issubclass(bare, Record):
            return self._read_record(node, bare, path, markers)
        origin = get_origin(bare)
        if origin is ByGateway:
            return self._read_by_gateway(node, get_args(bare)[0], path)
        if origin is Owned:
            return self._read_owned(node, get_args(bare)[0], path)
        if origin in (Union, types.UnionType):
            return self._read_union(node, get_args(bare), path, markers)
        if origin is tuple:
            return self._read_list(node, get_args(bare)[0], path, markers)
        if origin is Mapping:
            return self._read_mapping(node, get_args(bare), path)
        if origin is Literal:
            return self._read_choice(node, get_args(bare), path)
        return self._read_scalar(node, (bare,), path, markers)

    def _read_by_gateway(self, node: Node, annotation: Any, path: str) -> ByGateway[Any]:
        """Read a value for each gateway of its record; only once if nothing in it is given by gateway."""
        values, found = dict[str, Any](), dict[Finding, list[str]]()
        start, self._differs = len(self._findings), False
        for gateway in self._on or ("",):
            self._at = gateway
            values[gateway] = self.read(node, annotation, path)
            for finding in self._findings[start:]:
                found.setdefault(finding, []).append(gateway)
            del self._findings[start:]
            if not self._differs:
                break
        self._at = None
        self._findings += (_on(finding, gateways, values) for finding, gateways in found.items())
        return ByGateway(values if self._differs else dict.fromkeys(self._on, *values.values()))

    def _read_owned(self, node: Node, annotation: Any, path: str) -> Owned[Any]:
        """Read one value for all gateways, or one for each gateway that a mapping names."""
        if not (isinstance(node, MappingNode) and is_choice(node, annotation, self._gateways)):
            self._owned = path
            try:
                return Owned(self.read(node, annotation, path))
            finally:
                self._owned = ""
        for key, text in wrong_keys(node, self._gateways, ()):
            self._wrong(key, path, text)
        entries = self._entries(node, path)
        values = {name: self.read(child, annotation, _join(path, name)) for _, name, child in entries}
        return Owned(None, Table(values))

    def _read_chosen(self, node: MappingNode, annotation: Any, path: str, gateway: str) -> Any:
        """Read the value for one gateway from a mapping of gateways to values."""
        self._differs = True
        for key, text in wrong_keys(node, self._gateways, self._on):
            self._wrong(key, path, text)
        children = {name: child for _, name, child in self._entries(node, path)}
        if missing := [name for name in self._on if name not in children]:
            self._wrong(node, path, f"no value for {', '.join(missing)}: it runs there too")
        # If the gateways are not known, there is a finding already, and any value will do.
        name = gateway if gateway in children else next(iter(children))
        self._at = None
        value = self.read(children[name], annotation, _join(path, name))
        self._at = gateway
        return value

    def _read_union(self, node: Node, options: Sequence[Any], path: str, markers: Sequence[Any]) -> Any:
        wanted = [option for option in options if option is not type(None)]
        if len(wanted) < len(options) and is_null(node):
            return None
        maps = [option for option in wanted if is_mapping(option)]
        if maps and isinstance(node, MappingNode):
            return self.read(node, maps[0], path)
        wanted = [option for option in wanted if option not in maps]
        if len(wanted) == 1:
            return self.read(node, wanted[0], path)
        lists = [option for option in wanted if get_origin(unwrap(option)[0]) is tuple]
        if lists and (isinstance(node, SequenceNode) or _is_noted(node, lists[0])):
            return self.read(node, lists[0], path)
        return self._read_scalar(node, [option for option in wanted if option not in lists], path, markers)

    def _read_list(self, node: Node, item: Any, path: str, markers: Sequence[Any]) -> Any:
        notation = next((marker for marker in markers if isinstance(marker, Notation)), None)
        if isinstance(node, SequenceNode):
            if notation and (found := whole_in(node.value)):
                return self._wrong(node.value[found[0]], f"{path}[{found[0]}]", found[1])
            read = self.read if notation is None else self._read_part
            return tuple(read(child, item, f"{path}[{i}]") for i, child in enumerate(node.value))
        if notation and isinstance(node, ScalarNode) and kind_of(node) == "str" and not unclear_in(node, ()):
            return self._read_text(node, notation, path)
        if any(isinstance(marker, Single) for marker in markers) and not is_null(node):
            return (self.read(node, item, path),)
        words = notation.words if notation else "a list"
        patterns = any(isinstance(marker, Notation) for marker in (*markers, *unwrap(item)[1]))
        comment = " (# begins a comment)" if patterns and is_null(node) else ""
        return self._unlike(node, path, words, comment)

    def _read_part(self, node: Node, item: Any, path: str) -> Any:
        """Read one part of a pattern. The identifier of a CAN frame is one without quotes, as a number is."""
        if isinstance(node, ScalarNode) and node.style is None:
            try:
                found = identifier_in(str(node.value))
            except ValueError as e:
                return self._wrong(node, path, str(e))
            if found is not None:
                return found
        return self.read(node, item, path)

    def _read_text(self, node: ScalarNode, notation: Notation, path: str) -> Any:
        try:
            return notation.function(str(node.value))
        except ValueError as e:
            return self._wrong(node, path, str(e))

    def _read_mapping(self, node: Node, types: Sequence[Any], path: str) -> Any:
        key_type, value_type = types
        if not isinstance(node, MappingNode):
            return self._wrong(node, path, f"expected a mapping, found {describe(node)}")
        values, meant, markers = {}, dict[Hashable, str](), unwrap(key_type)[1]
        for key, name, child in self._entries(node, path):
            self._judge(markers, name, key, _join(path, name))
            if before := meant_before(name, markers, meant):
                self._wrong(key, _join(path, name), f'"{name[:64]}" is "{before[:64]}" again')
            values[name] = self.read(child, value_type, _join(path, name))
        return Table(values)

    def _entries(self, node: MappingNode, path: str) -> Iterator[tuple[Node, str, Node]]:
        """Yield each key, its text and its value. Add a finding for each key that is not text."""
        for key, child in node.value:
            if isinstance(key, ScalarNode):
                # As written: `on` is a key here, although it means true in YAML 1.1.
                yield key, str(key.value), child
            else:
                self._wrong(key, path, f"a key must be text, found {describe(key)}")

    def _read_record(self, node: Node, cls: type[Record], path: str, markers: Sequence[Any]) -> Any:
        if (called := called_of(markers)) is not None:
            return self._read_called(node, called, path)
        kind_of = next((marker for marker in markers if isinstance(marker, KindOf)), None)
        if kind_of is None or not isinstance(node, MappingNode):
            return self._read_dataclass(node, cls, path)
        try:
            given, kind = kind_among(kind_of, cls, node)
        except ValueError as e:
            return self._wrong(node, path, str(e))
        if kind is not None:
            return self._read_dataclass(node, kind, path)
        if not given and (slip := slip_in(kind_of, cls, node)):
            return self._wrong(slip[0], _join(path, str(slip[0].value)), slip[1])
        return self._wrong(node, path, kind_of.problem(given))

    def _read_called(self, node: Node, called: Called, path: str) -> Any:
        try:
            name, inner = called_among(called, node)
            kind = called.kinds.find(name)
        except ValueError as e:
            return self._wrong(node, path, str(e))
        if kind is None:
            ours = called.kinds.all()
            hint = known_elsewhere(name) or nearest(name, ours) or f": use one of {', '.join(ours)}"
            return self._wrong(node, path, f'{called.what} "{name[:64]}" is not known{hint}')
        if inner is not node:
            return self._read_dataclass(inner, kind, _join(path, name))
        if missing := _missing(kind, ()):
            keys = ", ".join(missing)
            return self._wrong(node, path, f"write {name}: below it, {keys} must be given too")
        return self._build(node, kind, {}, path)

    def _read_dataclass(self, node: Node, cls: type[Record], path: str) -> Any:
        if not isinstance(node, MappingNode):
            return self._read_short(node, cls, path)
        values, given, before = dict[str, Any](), list[str](), len(self._findings)
        # The gateways come first: the values of other fields can differ between them.
        entries = sorted(self._entries(node, path), key=lambda entry: entry[1] != cls.GATEWAYS)
        for key, name, child in entries:
            if found := self._meant(key, name, cls, path, [beside for _, beside, _ in entries]):
                given.append(name)
                self._outside.append((cls, name))
                values[found[0]] = self.read(child, found[1], _join(path, name))
                self._outside.pop()
                if name == cls.GATEWAYS:
                    self._on = values[found[0]] if len(self._findings) == before else ()
        for missing in _missing(cls, values):
            self._wrong(node, path, f'"{missing}" is missing')
        if len(self._findings) > before:
            return None
        if text := _unlike_one(cls, given):
            return self._wrong(node, path, text)
        return self._build(node, cls, values, path)

    def _meant(
        self, key: Node, name: str, cls: type[Record], path: str, keys: Sequence[str]
    ) -> tuple[str, Any] | None:
        """Return field and annotation of one of the `keys` of a `cls`; None, with a finding, if unknown."""
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
        others = self._on if self._at is not None else ()
        root = self._outside[0][0] if self._outside else cls
        hint = known_elsewhere(name) or hinted(name, words, others, lambda: home_of(name, root))
        if holder := holder_of(name, cls, keys):
            hint = f"; write it in {holder}: {holder}: {{{name}: ...}}"
        elif self._outside and (beside := written_beside(name, self._outside[-1][0])):
            hint = f"; write it beside {self._outside[-1][1]}, not in it: {beside}"
        if self._at is not None and name in self._gateways:
            hint = ": a gateway; values by gateway have no other keys beside them"
        self._wrong(key, _join(path, name), f'unknown key "{name[:64]}"{hint}')
        return None

    def _read_short(self, node: Node, cls: type[Record], path: str) -> Any:
        """Read a value in place of a mapping, if `SHORT` names its field; or nothing, if no key is needed."""
        if is_null(node) and not _missing(cls, ()):
            return self._build(node, cls, {}, path)
        if not cls.SHORT or is_null(node):
            return self._wrong(node, path, f"expected a mapping, found {describe(node)}")
        before = len(self._findings)
        value = self.read(node, settings(cls)[cls.SHORT].annotation, path)
        if len(self._findings) > before:
            return None
        if missing := _missing(cls, (cls.SHORT,)):
            return self._wrong(node, path, f"write a mapping: {', '.join(missing)} must be given too")
        return self._build(node, cls, {cls.SHORT: value}, path)

    def _build(self, node: Node, cls: type, values: dict[str, Any], path: str) -> Any:
        try:
            return cls(where=where(self._file, node.start_mark, path), **values)
        except ValueError as e:
            return self._wrong(node, path, str(e))

    def _read_choice(self, node: Node, choices: Sequence[str], path: str) -> Any:
        if isinstance(node, ScalarNode) and node.value in choices:
            return node.value
        return self._unlike(node, path, " or ".join(choices))

    def _read_scalar(self, node: Node, wanted: Sequence[Any], path: str, markers: Sequence[Any]) -> Any:
        kind, options = kind_of(node), [unwrap(w)[0] for w in wanted]
        if (int in options or float in options) and (text := unclear_in(node, options)):
            quotes = ", or put it in quotes if it is text" if str in options else ""
            return self._wrong(node, path, f"{text}{quotes}")
        for each, option in product(kinds_of(node), options):
            if isinstance(node, ScalarNode) and each in TAGS[option]:
                return self._seen(self._value(node, each, option, path), node, path, markers)
        words = " or ".join(map(WORDS.__getitem__, options))
        unquoted = str in options and kind in ("int", "float", "bool", "timestamp")
        quote = "; put it in quotes" if unquoted else ""
        return self._unlike(node, path, words, quote)

    def _seen(self, value: Any, node: Node, path: str, markers: Sequence[Any]) -> Any:
        """Return a value. Add a finding if it is a text with a character that nobody would see in it."""
        if isinstance(value, str) and not any(isinstance(marker, AnyText) for marker in markers):
            try:
                check_signs(value)
            except ValueError as e:
                return self._wrong(node, path, str(e))
        return value

    def _value(self, node: ScalarNode, kind: str, wanted: type, path: str) -> Any:
        try:
            return constructed(node, kind, wanted)
        except ValueError as e:
            return self._wrong(node, path, str(e))


def _is_noted(node: Node, annotation: Any) -> bool:
    """Return whether a node is text that can stand for a list of this type."""
    noted = any(isinstance(marker, Notation) for marker in unwrap(annotation)[1])
    return noted and isinstance(node, ScalarNode) and kind_of(node) == "str" and not unclear_in(node, (int,))


def _on(finding: Finding, gateways: list[str], among: Collection[str]) -> Finding:
    """Return a finding, with its gateways in its text if it does not hold on all, and its path has none."""
    if len(gateways) == len(among) or not {*gateways}.isdisjoint(finding.path.split(".")):
        return finding
    return finding._replace(text=f"on {', '.join(gateways)}: {finding.text}")


def _missing(cls: type[Record], given: Collection[str]) -> list[str]:
    """Return the required keys of a record that are not among the fields `given`."""
    return [key for key, one in settings(cls).items() if one.required and one.field.name not in given]


def _unlike_one(cls: type[Record], given: list[str]) -> str:
    """Return a finding's text unless exactly one of the record's alternatives is given; "" if it is."""
    choice = alternatives(cls)
    among = [key for key in given if choice and (key in choice[1].beside or key not in settings(cls))]
    return choice[1].problem(among) if choice else ""


def _join(path: str, name: str) -> str:
    return f"{path}.{name[:64]}" if path else name[:64]
