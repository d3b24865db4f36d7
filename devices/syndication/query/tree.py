"""The tree of a query, and its normal form as text. Pure.

Many spellings of one query have one tree, and so one text: `=` is an `Among` with one value, `!=` is its
negation, alternatives of one key are one `Among`, `and` and `or` have no child of their own kind, and two
negations cancel. Nodes have no `==`, since in Python 1 equals true.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from re import fullmatch
from typing import Final, TypeAlias, TypeVar

Scalar: TypeAlias = str | int | float | bool
"""A value with which a query can compare."""
T = TypeVar("T", bound=Scalar)
Value: TypeAlias = object
"""A value of MessagePack: scalars, nil, bytes, extensions, and lists and maps of them."""

KEYWORDS: Final = frozenset(("and", "or", "not", "like", "has", "in", "select", "distinct", "where"))
KEY_START: Final = r"(?:[^\W\d]|[~$])"
KEY_LETTER: Final = r"[\w/.%$~-]"


def in_any_case(word: str) -> str:
    """Return a pattern for a word in any case of ASCII: the flag of Python also takes `ſ` for `s`."""
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


@dataclass(frozen=True, slots=True, eq=False)
class Has:
    """A condition: the producer has this key, with any value."""

    key: str


@dataclass(frozen=True, slots=True, eq=False)
class Among:
    """A condition: the key's value, or an element of a list, is one of `values`. Made by `among`."""

    key: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Like:
    """A condition: the key's value, or an element of a list, is text that contains a match of the pattern."""

    key: str
    pattern: str
    position: int = 1  # of the pattern in the text, for an error


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """A condition: `part` does not hold. Made by `negation`."""

    part: "Node"


@dataclass(frozen=True, slots=True, eq=False)
class And:
    """A condition: all parts hold. Without parts, it always holds. Made by `both`."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Or:
    """A condition: at least one part holds. Made by `either`."""

    parts: tuple["Node", ...]


Node: TypeAlias = Has | Among | Like | Not | And | Or
EVERY: Final = And(())


def kinded(value: Value) -> tuple[bool, Value]:
    """Return a value with its kind, by which true and 1 differ, and 1 and 1.0 are equal."""
    return type(value) is bool, value


def among(key: str, values: Iterable[Scalar]) -> Among:
    """Return a comparison with each value once, in a fixed order."""
    once = {kinded(value): value for value in map(plain, values)}.values()
    return Among(key, tuple(sorted(once, key=lambda value: (type(value) is str, *kinded(value)))))


def plain(value: T) -> T | int:
    """Return a float as an equal integer of 64 bits, if there is one; other values unchanged."""
    if isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**64:
        return int(value)
    return value


def negation(part: Node) -> Node:
    """Return the negation of a node. Two negations cancel."""
    return part.part if isinstance(part, Not) else Not(part)


def both(parts: Iterable[Node]) -> And:
    """Return the conjunction of the parts, with the parts of conjunctions among them."""
    return And(tuple(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))))


def either(parts: Iterable[Node]) -> Node:
    """Return the disjunction of the parts, with the parts of disjunctions among them."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    whole = tuple(_merged(flat))
    return whole[0] if len(whole) == 1 else Or(whole)


def _merged(parts: list[Node]) -> Iterator[Node]:
    """Yield the parts, with one `Among` for each key, which costs one look-up for all its values."""
    values: dict[str, list[Scalar]] = {}
    for part in parts:
        if isinstance(part, Among):
            values.setdefault(part.key, []).extend(part.values)
    for part in parts:
        if not isinstance(part, Among):
            yield part
        elif part.key in values:
            yield among(part.key, values.pop(part.key))


def nodes(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield each node with its depth, which is 1 for the root, in the order of the text."""
    left = [(root, 1)]
    while left:
        node, depth = left.pop()
        yield node, depth
        if isinstance(node, And | Or):
            left += [(part, depth + 1) for part in reversed(node.parts)]
        elif isinstance(node, Not):
            left.append((node.part, depth + 1))


def text_of(node: Node) -> str:
    """Return the normal form of a tree, which parses to an equal tree. It recurses: bound its depth."""
    match node:
        case Has(key):
            return f"has {text_of_key(key)}"
        case Among(key, values):
            return _text_of_among(key, values)
        case Like(key, pattern):
            return f"{text_of_key(key)} like {quoted(pattern)}"
        case Not(Among(key, (value,))):
            return f"{text_of_key(key)} != {_text_of_value(value)}"
        case Not(part):
            return f"not {_grouped(part)}"
        case And(parts):
            return " and ".join(map(_grouped, parts))
        case Or(parts):
            return " or ".join(map(text_of, parts))


def _grouped(node: Node) -> str:
    return f"({text_of(node)})" if isinstance(node, And | Or) else text_of(node)


def _text_of_among(key: str, values: tuple[Scalar, ...]) -> str:
    if len(values) == 1:
        return f"{text_of_key(key)} = {_text_of_value(values[0])}"
    return f"[{', '.join(map(_text_of_value, values))}] in {text_of_key(key)}"


def _text_of_value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else repr(value)


def text_of_key(key: str) -> str:
    """Return a key as it stands in a query: in quotes if it is a keyword or has other characters."""
    plain = fullmatch(KEY_START + KEY_LETTER + "*", key) and key.lower() not in KEYWORDS
    return key if plain else quoted(key)


def quoted(text: str) -> str:
    """Return a text in double quotes, with a backslash before quotes and backslashes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
