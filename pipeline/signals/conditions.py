"""Conditions over signals, such as `engine/rpm > 3000 and gearbox/gear = 'Drive'`. Pure.

A condition is SQL in which a word is the end of a signal's name, if it is no word of SQL and no function. A
signal whose name has other characters stands in backticks, and a text in single or double quotes.
"""

import re
from collections.abc import Container
from typing import Final, NamedTuple

_WORD: Final = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>\d[\w.]*)|`(?P<quoted>[^`]+)`"
    r"|(?P<word>[^\W\d][\w.]*(?:/[\w.]+)*)(?P<call>\s*\()?",
    re.DOTALL,
)
_QUOTED: Final = re.compile(
    r"""`[^`]*`|(?P<quote>['"])(?P<inner>(?:(?!(?P=quote)|\\).|\\.|(?P=quote){2})*)(?P=quote)""", re.DOTALL
)
_SAME: Final = r"=|==|<=>|<>|!=|<=|>=|<|>"
_BEFORE_TEXT: Final = re.compile(
    rf"\s*(?:{_SAME}|(?:not\s+)?(?:in|like|ilike|rlike|regexp|between)\b)\s*\(?\s*'", re.IGNORECASE
)
_BEHIND_TEXT: Final = re.compile(rf"'\s*(?:{_SAME})\s*$")
_IN_CALL: Final = re.compile(
    r"\b(?:lower|upper|lcase|ucase|initcap|trim|ltrim|rtrim|length|left|right|substr|substring|startswith"
    r"|endswith|contains|instr|replace|concat)\s*\(\s*$",
    re.IGNORECASE,
)
_SQL: Final = frozenset(
    {
        *(
            "and",
            "or",
            "not",
            "between",
            "is",
            "null",
            "in",
            "like",
            "ilike",
            "rlike",
            "true",
            "false",
            "case",
            "when",
        )
    }
    | {*("then", "else", "end", "div", "distinct", "from", "escape", "as", "interval", "nan", "regexp")}
)


class Condition(NamedTuple):
    """A condition: the ends of the `names` of its signals, and as `sql` over columns: `s0`, `s1` ... are the
    numbers of these signals, and `t0`, `t1` ... their texts."""

    names: tuple[str, ...]
    sql: str


def parse(text: str, texts: Container[str] = ()) -> Condition:
    """Read a condition. Raises ValueError if no signal is in it.

    A signal stands for its text where it is compared with one, or in a function of texts, and of those of
    `texts` everywhere; else for its number.
    """
    names = dict[str, int]()
    given, text = text, _QUOTED.sub(_in_single_quotes, text)

    def replaced(found: re.Match[str]) -> str:
        name = found["quoted"] or found["word"]
        if name is None or found["call"] or name.lower() in _SQL:
            return found[0]
        place = names.setdefault(name, len(names))
        return f"{'t' if name in texts or _is_text(text, found) else 's'}{place}"

    sql = _WORD.sub(replaced, text)
    if not names:
        raise ValueError(f"{given}: no signal is in it; give a condition such as engine/rpm > 3000")
    return Condition(tuple(names), sql)


def _in_single_quotes(found: re.Match[str]) -> str:
    """Return a text in single quotes, as all engines take it: some join `'it''s'` to `its`."""
    quote = found["quote"]
    if not quote:
        return found[0]
    inner = re.sub(rf"\\.|{quote}{quote}|'", lambda part: _escaped(part[0]), found["inner"], flags=re.DOTALL)
    return f"'{inner}'"


def _escaped(part: str) -> str:
    """Return a part of a text as it stands in single quotes: an escape, a doubled quote, or `'`."""
    return part if part[0] == "\\" else part[0] if part[0] == '"' else "\\'"


def _is_text(text: str, found: re.Match[str]) -> bool:
    """Return whether a name in a condition stands for a text, by what is beside it."""
    before = text[: found.start()]
    return bool(
        _BEFORE_TEXT.match(text, found.end()) or _BEHIND_TEXT.search(before) or _IN_CALL.search(before)
    )
