"""Scalars of YAML: which types one can be of, and its value. Pure."""

import math
from collections.abc import Collection
from typing import Any

from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import Node, ScalarNode

from topologies.loading.document import describe
from topologies.loading.numbers import unclear
from topologies.loading.variables import Expanded

WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
"""The name of a value of each type."""
TAGS = {bool: ("bool",), int: ("int",), float: ("float", "int"), str: ("str",)}
"""The types of YAML that stand for a type, by that type."""
_NUMBER_CHARACTERS = 64  # a longer one costs more to read than it is long, and cannot be shown
_construct = SafeConstructor()
_MAKE = {
    "bool": _construct.construct_yaml_bool,
    "int": _construct.construct_yaml_int,
    "float": _construct.construct_yaml_float,
    "str": _construct.construct_yaml_str,
}


def kind_of(node: Node) -> str:
    """Return the type of a scalar by YAML's own rules, such as `str`; "" for anything else."""
    standard = isinstance(node, ScalarNode) and node.tag.startswith("tag:yaml.org,2002:")
    return node.tag.rpartition(":")[2] if standard else ""


def kinds_of(node: Node) -> tuple[str, ...]:
    """Return the types that a scalar can be of: also text, or a type without quotes, if it has variables."""
    plain = node.plain_tag.rpartition(":")[2] if isinstance(node, Expanded) else ""
    return (kind_of(node), "str", plain) if plain else (kind_of(node),)


def unclear_in(node: Node, wanted: Collection[type]) -> str:
    """Return why a scalar is a number that may not be the one that is meant; "" if it is, or is text."""
    if not isinstance(node, ScalarNode):
        return ""
    number = kind_of(node) in ("int", "float") or (isinstance(node, Expanded) and str not in wanted)
    return unclear(node.value) if number or (node.style is None and kind_of(node) == "str") else ""


def is_null(node: Node) -> bool:
    """Return whether a node is nothing."""
    return kind_of(node) == "null"


def constructed(node: ScalarNode, kind: str, wanted: type) -> Any:
    """Return the value of a scalar of the YAML type `kind` as a `wanted`. Raises ValueError."""
    try:
        if wanted is not str and len(node.value) > _NUMBER_CHARACTERS:
            raise ValueError
        value = wanted(_MAKE[kind](node))
    except (ValueError, OverflowError, KeyError, IndexError, ConstructorError):
        raise ValueError(f"{describe(node)} cannot be read as {WORDS[wanted]}") from None
    if wanted is float and not math.isfinite(value):
        raise ValueError("the number must be finite")
    return value
