"""Strict, bounded parsing of YAML into the node tree of PyYAML. Every node has its line and column.

PyYAML by itself accepts a repeated key silently and lets aliases multiply without limit. Here a repeated key
is a finding, and the number of values is limited. Variables in values are replaced (see `variables`).
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from yaml import SafeLoader
from yaml.composer import ComposerError
from yaml.error import Mark, MarkedYAMLError, YAMLError
from yaml.events import AliasEvent, Event
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from bus.schema import Where
from topologies.findings import Finding, error, note
from topologies.loading.variables import Use, VariableError, expanded

CHARACTERS_MAX = 1 << 20
NODES_MAX = 50_000  # an alias counts as many as the nodes that it stands for
DEPTH_MAX = 32
_DEEP = f"nested deeper than {DEPTH_MAX}"
_BREAK = re.compile("[\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in YAML 1.1 alone: no editor shows that they do."""
_INDENT = "is this line, or one above, indented wrong, or no blank behind a key's colon?"
_ADVICE = {
    "mapping values are not allowed": f": {_INDENT} Text with `: ` in it needs quotes",
    "expected <block end>": f": {_INDENT} Items of a list begin with `- `",
    "could not find expected ':'": ": a key ends with a colon and a blank; what belongs to it is indented",
    "found character '\\t'": ": indent with blanks, not with tabs",
    "but got '?'": ': text with a ? in brackets or braces needs quotes, as in "MEAS:VOLT?"',
    "expected ',' or ']'": ": is a bracket or a comma missing?",
    "expected ',' or '}'": ": is a brace or a comma missing? A mapping is written {key: value}",
    "found unknown escape character": ": in double quotes a backslash begins an escape: use single quotes",
    "found unexpected end of stream": ": is a quote missing?",
    "found undefined alias": ": * begins an alias in YAML: put the text in quotes",
    "cannot start any token": ": put text that begins with this character in quotes",
}
"""Words of PyYAML, and what to do."""


class _Loader(SafeLoader):
    """A loader that only composes nodes. It never constructs objects from the file."""

    def __init__(self, text: str, variables: Mapping[str, str]) -> None:
        super().__init__(text)
        self.repeated: list[tuple[Mark, str]] = []
        self.wrong: list[tuple[Mark, int, str]] = []
        self.used: list[tuple[Mark, Use]] = []
        self._variables = variables
        self._depth = self._nodes = self._characters = 0
        self._is_key = False
        self._sizes: dict[int, int] = {}

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Refuse too many brackets here: composing would see that after hundreds more of them, each of which
        PyYAML compares with all before it."""
        if self.flow_level >= DEPTH_MAX:
            raise ScannerError(None, None, _DEEP, self.get_mark())
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: Event = self.peek_event()  # type: ignore[no-untyped-call]
        alias, before = isinstance(event, AliasEvent), self._nodes
        mark: Any = event.start_mark
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ComposerError(None, None, _DEEP, mark)
        self._is_key = isinstance(parent, MappingNode) and index is None
        node = super().compose_node(parent, index)
        self._depth -= 1
        self._nodes += self._size(node, mark) if alias else 1
        if self._nodes > NODES_MAX:
            raise ComposerError(None, None, f"more than {NODES_MAX} values, aliases counted", mark)
        if not alias:
            self._sizes[id(node)] = self._nodes - before
        return node

    def _size(self, node: Node | None, mark: Mark) -> int:
        if id(node) not in self._sizes:
            raise ComposerError(None, None, "an alias inside its own anchor", mark)
        return self._sizes[id(node)]

    def compose_scalar_node(self, anchor: dict[Any, Node]) -> ScalarNode:
        node: ScalarNode = super().compose_scalar_node(anchor)
        if self._is_key:
            return node
        try:
            node, uses = expanded(node, self._variables)
        except VariableError as e:
            self.wrong.append((node.start_mark, _offset(node, e.offset), str(e)))
            return node
        self.used += ((node.start_mark, use._replace(offset=_offset(node, use.offset))) for use in uses)
        self._characters += len(node.value) if uses else 0
        if self._characters > CHARACTERS_MAX:
            text = f"variables stand for more than {CHARACTERS_MAX} characters"
            raise ComposerError(None, None, text, node.start_mark)
        if anchor is not None:
            self.anchors[anchor] = node
        return node

    def compose_mapping_node(self, anchor: dict[Any, Node]) -> MappingNode:
        node = super().compose_mapping_node(anchor)
        self._find_repeated(node)
        self.flatten_mapping(node)  # merges `<<: *defaults`; the mapping's own keys come last
        last = {key.value if isinstance(key, ScalarNode) else id(key): (key, v) for key, v in node.value}
        node.value = list(last.values())
        return node

    def _find_repeated(self, node: MappingNode) -> None:
        seen: dict[str, int] = {}
        for key in (key for key, _ in node.value if isinstance(key, ScalarNode)):
            if key.value in seen:
                text = f'key "{key.value[:64]}" is repeated; it is on line {seen[key.value]} already'
                self.repeated.append((key.start_mark, text))
            seen.setdefault(key.value, key.start_mark.line + 1)


def _offset(node: ScalarNode, offset: int) -> int:
    """Return how far behind the beginning of a value a place in it is; 0 if it has several lines."""
    lines = node.end_mark.line - node.start_mark.line
    return 0 if lines else offset + (node.style is not None)


class Document(NamedTuple):
    """A parsed text. `root` is None if it could not be parsed; `findings` says why, or what else is wrong.

    `notes` has one for each variable. `unknown` has line and column of each value whose variables could not
    be replaced, so that any fault that is found in such a value follows from that.
    """

    root: Node | None
    findings: list[Finding]
    notes: tuple[Finding, ...] = ()
    unknown: frozenset[tuple[int, int]] = frozenset()


def parse(text: str, file: str, variables: Mapping[str, str]) -> Document:
    """Parse a text, and replace the variables in it. `file` is its name in findings."""
    if len(text) > CHARACTERS_MAX:
        found = [error(Where(file), f"the file is longer than {CHARACTERS_MAX} characters")]
        return Document(None, found)
    if ends := _BREAK.search(text):
        name = f"U+{ord(ends[0]):04X}"
        words = f'{name} ends a line in YAML 1.1 alone: take it out (in double quotes it is "\\u{name[2:]}")'
        return Document(None, [error(Where(file, *_line_column(text, ends.start())), words)])
    try:
        loader = _Loader(text, variables)
        root = loader.get_single_node()
    except ReaderError as e:
        place = Where(file, *_line_column(text, e.position))
        return Document(None, [error(place, f"unprintable character #x{e.character:04x}")])
    except MarkedYAMLError as e:
        text = " ".join(f"not YAML: {e.problem or ''} {e.context or ''}".split())
        return Document(None, [error(where(file, e.problem_mark or e.context_mark), text + _advice(e))])
    except YAMLError as e:
        return Document(None, [error(Where(file), str(e).replace("\n", " "))])
    if root is None:
        return Document(None, [error(Where(file, 1, 1), "the file is empty")])
    found = [error(where(file, mark), text) for mark, text in loader.repeated]
    found += [error(_inside(file, mark, offset), text) for mark, offset, text in loader.wrong]
    notes = tuple(_note(file, mark, use) for mark, use in loader.used)
    return Document(root, found, notes, frozenset(where(file, mark)[1:3] for mark, _, _ in loader.wrong))


def _advice(fault: MarkedYAMLError) -> str:
    """Return what to do about a fault that PyYAML found, in the words of who writes a file."""
    return next((advice for words, advice in _ADVICE.items() if words in (fault.problem or "")), "")


def _note(file: str, mark: Mark, use: Use) -> Finding:
    text = (
        f'the variable {use.name} is {"not set; its default is " if use.is_default else ""}"{use.value[:64]}"'
    )
    return note(_inside(file, mark, use.offset), text)


def _inside(file: str, mark: Mark, offset: int) -> Where:
    return Where(file, mark.line + 1, mark.column + 1 + offset)


def _line_column(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def where(file: str, mark: Mark | None, path: str = "") -> Where:
    """Return the place of a mark of PyYAML; without a mark, the file only."""
    return Where(file, mark.line + 1, mark.column + 1, path) if mark else Where(file)


def describe(node: Node) -> str:
    """Describe the kind of a node in the terms of YAML."""
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    kind = node.tag.rpartition(":")[2]
    if kind == "null":
        return "nothing"
    text = f'"{str(node.value)[:40]}"'
    words = {"int": "the number", "float": "the number", "bool": "the true/false value", "str": "the text"}
    return f"{words.get(kind, f'a {node.tag[:40]} value')} {text}"
