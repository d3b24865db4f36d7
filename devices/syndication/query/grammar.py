"""The grammar of queries, and the parser that Lark makes of it (LALR, with a contextual lexer). Pure.

A word is a keyword only where that keyword can stand. The parser keeps its own stack, so a deep text costs no
recursion.
"""

import re
from functools import cache
from math import isinf
from typing import TYPE_CHECKING, Final

from devices.syndication.query.errors import QueryError
from devices.syndication.query.tree import (
    EVERY,
    KEY_LETTER,
    KEY_START,
    Has,
    Like,
    Node,
    Scalar,
    among,
    both,
    either,
    in_any_case,
    negation,
)

if TYPE_CHECKING:
    from lark import Lark, Token

PREDICATE: Final = "predicate"
SELECTION: Final = "selection"
_INTEGERS: Final = range(-(2**63), 2**64)  # of MessagePack
_ESCAPED: Final = re.compile(r"""\\(["'\\])""")


def _keyword(word: str) -> str:
    """Return the terminal of a keyword, in any case: `_LIKE.2: /[lL][iI][kK][eE](?!...)/`."""
    return f"_{word.upper()}.2: /{in_any_case(word)}(?!{_LETTER})/"


_LETTER: Final = KEY_LETTER.replace("/", r"\/")
_KEYWORDS: Final = "\n".join(
    map(_keyword, ("and", "or", "not", "like", "has", "in", "select", "distinct", "where"))
)
GRAMMAR: Final = rf"""
predicate: either?
selection: _SELECT _DISTINCT key (_WHERE either)?

?either: both (_OR both)*
?both: condition (_AND condition)*
?condition: _NOT condition            -> negation
    | _OPEN either _CLOSE
    | _HAS key                        -> has
    | key EQUALS value                -> equals
    | key DIFFERS value               -> differs
    | key _LIKE STRING                -> like
    | _OPEN_LIST value (_COMMA value)* _CLOSE_LIST _IN key -> among

key: KEY | STRING
value: STRING | NUMBER | BOOLEAN

{_KEYWORDS}
EQUALS: "="
DIFFERS: "!="
_OPEN: "("
_CLOSE: ")"
_OPEN_LIST: "["
_CLOSE_LIST: "]"
_COMMA: ","
KEY: /{KEY_START}{_LETTER}*/
STRING: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
NUMBER: /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?!{_LETTER})/i
BOOLEAN: /(?:{in_any_case("true")}|{in_any_case("false")})(?!{_LETTER})/
%ignore /\s+/
"""


class Builder:
    """Builds the tree: Lark calls the method with the name of a rule when it has parsed that rule."""

    def predicate(self, parts: list[Node]) -> Node:
        return parts[0] if parts else EVERY

    def selection(self, parts: "tuple[str] | tuple[str, Node]") -> tuple[str, Node]:
        return parts[0], parts[1] if len(parts) == 2 else EVERY

    def either(self, parts: list[Node]) -> Node:
        return either(parts)

    def both(self, parts: list[Node]) -> Node:
        return both(parts)

    def negation(self, parts: list[Node]) -> Node:
        return negation(parts[0])

    def has(self, parts: list[str]) -> Node:
        return Has(parts[0])

    def equals(self, parts: "tuple[str, Token, Scalar]") -> Node:
        return among(parts[0], (parts[2],))

    def differs(self, parts: "tuple[str, Token, Scalar]") -> Node:
        return negation(self.equals(parts))

    def like(self, parts: "tuple[str, Token]") -> Node:
        return Like(parts[0], _unquoted(parts[1]), _position(parts[1]))

    def among(self, parts: "list[Scalar]") -> Node:
        *values, key = parts
        return among(str(key), values)

    def key(self, parts: "list[Token]") -> str:
        return _unquoted(parts[0]) if parts[0].type == "STRING" else str(parts[0])

    def value(self, parts: "list[Token]") -> Scalar:
        token = parts[0]
        if token.type == "STRING":
            return _unquoted(token)
        return token.lower() == "true" if token.type == "BOOLEAN" else _number(token)


def _position(token: "Token") -> int:
    """Return the position of a token in characters, counted from 1."""
    return (token.start_pos or 0) + 1


def _unquoted(token: str) -> str:
    return _ESCAPED.sub(r"\1", token[1:-1])


def _number(token: "Token") -> int | float:
    number = int(token) if token.lstrip("-").isdecimal() else float(token)
    if (number not in _INTEGERS) if isinstance(number, int) else isinf(number):
        raise QueryError(_position(token), "the number does not fit into 64 bits")
    return number


@cache
def parser() -> "Lark":
    """Return the parser for both start rules, `PREDICATE` and `SELECTION`. It is made once, in 0.1 s."""
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", start=[PREDICATE, SELECTION], transformer=Builder())
