"""Parses texts to queries and selections, within bounds. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from devices.syndication.query.errors import QueryError, syntax_error
from devices.syndication.query.evaluate import PATTERN_MEMORY, Pattern, Test, compiled, test_of
from devices.syndication.query.grammar import PREDICATE, SELECTION, parser
from devices.syndication.query.tree import (
    KEY_LETTER,
    Among,
    Has,
    Like,
    Node,
    in_any_case,
    nodes,
    text_of,
    text_of_key,
)

TEXT_BYTES: Final = 4096
"""The most bytes of a query in UTF-8, as it is written and in its normal form."""
CONDITIONS: Final = 128
"""The most comparisons and `has` in a query."""
DEPTH: Final = 32
"""The most levels of `and`, `or` and `not` inside each other. Parentheses alone make none."""
PATTERNS: Final = 8
"""The most different patterns of `like` in a query."""
PATTERN_LETTERS: Final = 200
"""The most characters of a pattern."""
INSTRUCTIONS: Final = 256
"""The most instructions of RE2 in all patterns of a query: each may look at each byte of a value."""

# in a predicate, a key called `select` is followed by one of these relations
_SELECTS: Final = re.compile(
    rf"\s*{in_any_case('select')}(?!{KEY_LETTER}|\s*(?:=|!=|{in_any_case('like')}(?!{KEY_LETTER})))"
)
_EVERYTHING: Final = "select distinct a where not (has b or ['c', 1, true] in d) and e != 'f' and g like 'h'"
_BASE_BYTES: Final = 1024
_TEXT_COST: Final = 4  # a single text is searched in a list by Python, other values by us
_VALUE_COST: Final = 40
_LETTER_BYTES: Final = 100  # measured: 24 to 99 for each character of the normal form


@dataclass(frozen=True, slots=True)
class Query:
    """A predicate over the metadata of a producer. Queries are equal if their normal forms are equal."""

    text: str
    """The normal form, which parses to an equal query. It can be longer than what was parsed, and is at most
    as long as a query may be."""
    keys: frozenset[str] = field(compare=False)
    """The keys that the query names: a change of other keys does not change the result."""
    matches: Test = field(compare=False, repr=False)
    """Return whether metadata match. Never raises."""
    memory_bytes: int = field(compare=False)
    """The most memory of the query in bytes, about, with that of its patterns while they run."""
    instructions: Mapping[str, int] = field(compare=False)
    """The instructions of RE2 by key: each may look at each byte of the key's value."""
    comparisons: Mapping[str, int] = field(compare=False)
    """The cost of comparing one element of a key's list, by key: 1 is an instruction at a byte."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A request for the different values of one key among the producers that match a query."""

    key: str
    query: Query

    @property
    def text(self) -> str:
        """The normal form."""
        where = f" where {self.query.text}" if self.query.text else ""
        return f"select distinct {text_of_key(self.key)}{where}"


def parse(text: str) -> Query:
    """Return the query of a text. An empty text matches every producer. Raises `QueryError`."""
    return _query(_parsed(text, PREDICATE))


def selection(text: str) -> Selection:
    """Return the selection of `select distinct KEY where PREDICATE`. Raises `QueryError`."""
    key, predicate = _parsed(text, SELECTION)
    found = Selection(key, _query(predicate))
    _check_normal(found.text)
    return found


def subscription(text: str) -> tuple[Query, str | None]:
    """Return the query of a text, and the key whose values it selects; None if it is no selection.

    Raises `QueryError`.
    """
    if _SELECTS.match(text) is None:
        return parse(text), None
    found = selection(text)
    return found.query, found.key


def prepare() -> None:
    """Make the grammar's tables and import the libraries, which the first query needs. It takes 0.2 s."""
    import_module("re2")
    subscription(_EVERYTHING)


def _parsed(text: str, start: str) -> Any:
    from lark.exceptions import UnexpectedInput

    _check_text(text)
    try:
        return parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise syntax_error(text, error) from None


def _check_text(text: str) -> None:
    try:
        size = len(text[: TEXT_BYTES + 1].encode())
    except UnicodeEncodeError as error:
        raise QueryError(error.start + 1, "this is half of a surrogate pair, and no character") from None
    if size > TEXT_BYTES:
        raise QueryError(1, f"the query is longer than {TEXT_BYTES} bytes of UTF-8")


def _check_normal(text: str) -> None:
    if (size := len(text.encode())) > TEXT_BYTES:
        raise QueryError(
            1,
            f"the query has {size} bytes of UTF-8 in its normal form, in which it is kept, but may have "
            f"{TEXT_BYTES}: write fewer conditions or shorter values",
        )


def _query(root: Node) -> Query:
    found = list(nodes(root))
    _bound("levels of and, or and not", max(depth for _, depth in found) - 1, DEPTH)  # a leaf is none
    leaves = [node for node, _ in found if isinstance(node, Has | Among | Like)]
    _bound("conditions", len(leaves), CONDITIONS)
    likes = [node for node in leaves if isinstance(node, Like)]
    patterns = _compiled(likes)
    text, keys = text_of(root), frozenset(node.key for node in leaves)
    _check_normal(text)
    memory_bytes = _BASE_BYTES + _LETTER_BYTES * len(text) + PATTERN_MEMORY * len(patterns)
    test, instructions = test_of(root, patterns), _instructions(likes, patterns)
    return Query(text, keys, test, memory_bytes, instructions, _comparisons(leaves))


def _compiled(likes: list[Like]) -> dict[str, Pattern]:
    """Compile each pattern once. Raises `QueryError` beyond the bounds."""
    _bound("different patterns", len({node.pattern for node in likes}), PATTERNS)
    patterns: dict[str, Pattern] = {}
    left = INSTRUCTIONS
    for node in likes:
        if len(node.pattern) > PATTERN_LETTERS:
            raise QueryError(node.position, f"the pattern is longer than {PATTERN_LETTERS} characters")
        if node.pattern not in patterns:
            patterns[node.pattern] = compiled(node)
        left -= patterns[node.pattern].programsize
        if left < 0:
            raise QueryError(node.position, f"the patterns have more than {INSTRUCTIONS} instructions of RE2")
    return patterns


def _instructions(likes: list[Like], patterns: dict[str, Pattern]) -> dict[str, int]:
    found = Counter[str]()
    for node in likes:
        found[node.key] += patterns[node.pattern].programsize
    return dict(found)


def _comparisons(leaves: Iterable[Node]) -> dict[str, int]:
    found = Counter[str]()
    for node in leaves:
        if isinstance(node, Among):
            found[node.key] += _TEXT_COST if _is_text(node) else _VALUE_COST
    return dict(found)


def _is_text(node: Among) -> bool:
    return len(node.values) == 1 and isinstance(node.values[0], str)


def _bound(what: str, number: int, most: int) -> None:
    if number > most:
        raise QueryError(1, f"the query has {number} {what}, but may have {most}")
