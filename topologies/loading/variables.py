"""Variables in the values of a topology: `${NAME}` and `${NAME:-DEFAULT}`; `$${` stands for `${`. Pure.

A value without quotes is read again after its variables have been replaced, so `port: ${PORT}` is a number.
In quotes, which YAML needs for braces inside `[...]` and `{...}`, it can be whatever its key expects.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}|\$(\{)")
_HINT = "a variable is written ${NAME} or ${NAME:-DEFAULT}; $${ stands for ${"


class Expanded(ScalarNode):
    """A value in which variables were replaced. `plain_tag` is its tag if it stood there without quotes."""

    def __init__(self, node: ScalarNode, value: str, plain_tag: str) -> None:
        tag = plain_tag if node.style is None else node.tag
        super().__init__(tag, value, node.start_mark, node.end_mark, node.style)
        self.plain_tag = plain_tag


class Use(NamedTuple):
    """A variable in a value: its place in that, in characters, and what it stands for."""

    offset: int
    name: str
    value: str
    is_default: bool


class VariableError(ValueError):
    """A value whose variables cannot be replaced. `offset` is the place in the value, in characters."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.offset = offset


def uses_in(text: str, variables: Mapping[str, str]) -> Iterator[Use]:
    """Yield each variable in a value. Raises `VariableError` for one that is not set, or is malformed."""
    for found in _REFERENCE.finditer(text):
        escape, name, has_default, default, brace = found.groups()
        if brace:
            raise VariableError(found.start(), _HINT)
        if escape:
            continue
        value = variables.get(name, "")
        if not value and not has_default and name not in variables:
            text = f"the variable {name} is not set: set it, or write ${{{name}:-DEFAULT}}"
            raise VariableError(found.start(), text)
        if not value.isprintable():
            raise VariableError(
                found.start(), f"the variable {name} holds a line break or a control character"
            )
        yield Use(found.start(), name, value or default or "", not value and bool(has_default))


def expanded(node: ScalarNode, variables: Mapping[str, str]) -> tuple[ScalarNode, list[Use]]:
    """Return a value with its variables replaced, and which those are. Raises `VariableError`."""
    if "${" not in node.value:
        return node, []
    uses = list(uses_in(node.value, variables))
    values = iter(uses)
    text = _REFERENCE.sub(lambda found: "${" if found[1] else next(values).value, node.value)
    resolver: Any = Resolver()
    return Expanded(node, text, resolver.resolve(ScalarNode, text, (True, False))), uses
