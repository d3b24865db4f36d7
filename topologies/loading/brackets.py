"""Brackets around what is a pattern already: a list of names is one pattern. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Final

from yaml.nodes import Node, ScalarNode, SequenceNode

_SHOWN: Final = 64
_PLAIN: Final = re.compile(r"\w[\w./ -]*|/")  # what YAML reads as it stands, in any place


def whole_in(parts: Sequence[Node]) -> tuple[int, str] | None:
    """Return which part of a list of names is no name but a pattern, or a list, and what to write; None if
    none is."""
    for at, part in enumerate(parts):
        if isinstance(part, SequenceNode):
            return at, f"the list is one pattern, and this is a list in it{_instead(part.value, parts)}"
        if isinstance(part, ScalarNode) and "/" in part.value:
            said = f'"{part.value[:_SHOWN]}" is a pattern, and the list is the names of one'
            return at, said + _instead(parts, parts)
    return None


def _instead(names: Sequence[Node], parts: Sequence[Node]) -> str:
    """Return advice to write the names as one word in place of the list of all parts; "" if nobody knows,
    or for longer ones than are shown."""
    words = [part.value.strip("/") for part in names if isinstance(part, ScalarNode)]
    if len(words) < len(names) or (names is not parts and len(parts) > 1):
        return ""
    one = "/".join(filter(None, words)) or "/"
    if len(one) > _SHOWN:
        return ""
    word = one if _PLAIN.fullmatch(one) else json.dumps(one, ensure_ascii=False)
    return f": write {word} in place of the list" + (", if it is one pattern" if len(words) > 1 else "")
