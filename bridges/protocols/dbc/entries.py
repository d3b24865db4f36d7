"""The entries of a DBC, each with its line, and what in it is no entry. Pure.

A text is read once, from its beginning to its end. An entry that is not understood ends with its
line, or its semicolon before the next line with a keyword. A text in quotes may hold such a line only if the
quotes are closed.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

KEYWORDS: Final = frozenset(
    (
        *("BA_", "BA_DEF_", "BA_DEF_DEF_", "BA_DEF_DEF_REL_", "BA_DEF_REL_", "BA_DEF_SGTYPE_", "BA_REL_"),
        *("BA_SGTYPE_", "BO_", "BO_TX_BU_", "BS_", "BU_", "BU_BO_REL_", "BU_EV_REL_", "BU_SG_REL_", "CAT_"),
        *("CAT_DEF_", "CM_", "ENVVAR_DATA_", "EV_", "EV_DATA_", "FILTER", "NS_", "NS_DESC_", "SG_"),
        *("SG_MUL_VAL_", "SGTYPE_", "SGTYPE_VAL_", "SIG_GROUP_", "SIG_TYPE_REF_", "SIG_VALTYPE_"),
        *("SIGTYPE_VALTYPE_", "VAL_", "VAL_TABLE_", "VERSION"),
    )
)
_SHOWN: Final = 40
_REACH: Final = 1 << 13  # within which the semicolon of an entry that is not understood is looked for

# A possessive quantifier is for what has no quantifier or group inside before something that may fail there:
# Python before 3.11.5 goes on behind a try that failed half-way (python/cpython#106052).
_GAP: Final = r"(?:[ \t\r\n\x1a]+|//[^\n]*(?:\n|\Z))*+"
_WORD: Final = rf"(?!(?:{'|'.join(sorted(KEYWORDS))})(?!\w))\w+"
_WHOLE: Final = r"\w+(?!\w)"  # not a piece of a word, the rest of which could be a value
_TEXT: Final = r'"(?:\\"|[^"])*+"'
_LINE: Final = r'"(?:\\"|[^"\n])*+"'
_NUMBER: Final = r"[-+]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][-+]?\d{1,5})?(?![\w.])"
_DIGITS: Final = r"\d{1,19}(?!\w)"
_ID: Final = r"(\d{1,19})(?!\w)"
_PAIRS: Final = rf"((?:[-+]?\d{{1,30}}(?!\w){_GAP}{_TEXT}{_GAP})*)"
_RANGE: Final = rf"\d{{1,19}}{_GAP}-{_GAP}\d{{1,19}}"
_BEGUN: Final = r"[ \t]*(?:[A-Z][A-Z_]*_|VERSION)(?=[ \t]*[\":\w\d])(?!\w)"

Part = tuple[str, str]
"""The part of an entry that is expected at a place, in words and as an expression."""

_A_NAME: Final = ("a name", r"(\w+)")
_AN_ID: Final = ("the number of a message", _ID)
_FORMS: Final[dict[str, Sequence[Part]]] = {
    "VERSION": (("a text in quotes", _TEXT),),
    "NS_": (("a colon", r":?(?:[ \t\r\n]*[A-Z_]+[ \t]*(?=\r?\n|\Z))*(?:[ \t]+[A-Z_]+_(?!\w))*"),),
    "BS_": (("a colon", r":[^\n]*"),),
    "BU_": (("a colon", ":"), ("names", rf"((?:{_GAP},?{_GAP}{_WORD})*)")),
    "BO_": (
        _AN_ID,
        _A_NAME,
        ("a colon", ":"),
        ("a size in bytes", r"(0|[1-9]\d{0,8})(?![\w.])"),
        ("", rf"({_WORD})?"),
    ),
    "SG_": (
        _A_NAME,
        ("a colon, or the mark of a multiplexer", rf"(?:(M|m\d{{0,9}}M?){_GAP})?:"),
        (
            "start|bits@order and sign",
            rf"(\d{{1,9}}){_GAP}\|{_GAP}(\d{{1,9}}){_GAP}@{_GAP}([01]){_GAP}([+-])",
        ),
        ("(factor,offset)", rf"\({_GAP}({_NUMBER}){_GAP},{_GAP}({_NUMBER}){_GAP}\)"),
        ("[low|high]", rf"\[{_GAP}({_NUMBER}){_GAP}\|{_GAP}({_NUMBER}){_GAP}\]"),
        ("a unit in quotes", rf"({_LINE})"),
        ("", rf"({_WORD}(?:[ \t]*,{_GAP}{_WORD}|[ \t]++{_WORD})*)?"),
    ),
    "CM_": (
        (
            "a text, or what it is about",
            rf"(?:SG_{_GAP}{_ID}{_GAP}\w+{_GAP}|BO_{_GAP}{_ID}{_GAP}|(?:EV|BU)_{_GAP}\w+{_GAP})?(?=\")",
        ),
        ("a text in quotes", _TEXT),
    ),
    "BA_DEF_": (
        ("a name in quotes", rf"(?:(SG_|BO_|EV_|BU_){_GAP})?({_TEXT})"),
        ("a type", r"(\w+)"),
        ("", rf"({_TEXT}(?:{_GAP},{_GAP}{_TEXT})*|(?:{_NUMBER}{_GAP})*)"),
    ),
    "BA_DEF_DEF_": (("a name in quotes", rf"({_TEXT})"), ("a value", rf"({_TEXT}|{_NUMBER})")),
    "BA_": (
        ("a name in quotes", rf"({_TEXT})"),
        ("", rf"((?:BO_{_GAP}{_ID}|SG_{_GAP}{_ID}{_GAP}{_WHOLE}|(?:BU|EV)_{_GAP}{_WHOLE}){_GAP})?"),
        ("a value", rf"({_TEXT}|{_NUMBER})"),
    ),
    "VAL_": (("a name", rf"(?:{_ID}{_GAP}|(?!{_DIGITS}))(\w+)"), ("", _PAIRS)),
    "VAL_TABLE_": (_A_NAME, ("", _PAIRS)),
    "SIG_VALTYPE_": (_AN_ID, _A_NAME, ("a type", rf"(:?){_GAP}(\d)(?!\w)")),
    "SG_MUL_VAL_": (_AN_ID, _A_NAME, _A_NAME, ("ranges", rf"({_RANGE}(?:{_GAP},{_GAP}{_RANGE})*)")),
    "BO_TX_BU_": (_AN_ID, ("a colon", ":"), ("names", rf"(\w+(?:{_GAP},{_GAP}\w+)*)")),
}
_OPEN: Final = frozenset(("VERSION", "NS_", "BS_", "BU_", "BO_", "SG_"))
_CUT: Final = "the file ends within it: is it cut off?"
_UNENDED: Final = "it ends without a semicolon"
_LAST: Final = {"BO_": "it has no sender", "SG_": "it has no receiver"}


class _Form(NamedTuple):
    whole: re.Pattern[str]
    parts: tuple[tuple[str, re.Pattern[str]], ...]


def _form(kind: str) -> _Form:
    parts = _FORMS[kind]
    each = tuple((label, re.compile(_GAP + part, re.ASCII)) for label, part in parts)
    return _Form(re.compile("".join(_GAP + part for _, part in parts), re.ASCII), each)


_COMPILED: Final = {kind: _form(kind) for kind in _FORMS}
_SKIPPED: Final = re.compile(_GAP, re.ASCII)
_KEYWORD: Final = re.compile(r"([A-Z][A-Z_]*_|VERSION)(?!\w)", re.ASCII)
_NEXT: Final = re.compile(rf"^{_BEGUN}", re.ASCII | re.MULTILINE)
_CLOSED: Final = re.compile(rf"(?:[^\";]++|{_TEXT})*;")
_QUOTE: Final = re.compile(r'"(?<!\\")')  # looked for by its first character
_TEXT_CLOSED: Final = re.compile(rf"{_TEXT}[ \t\r\n]*;")
_REMARK: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


STRANGE, REST, REMARK = "", ";", "/"
"""The kinds of text that belongs to no entry: whole lines, the rest of one, and a remark."""


class Fault(NamedTuple):
    """Something wrong in a line. `number` is the identifier of the message that it is about, as a DBC writes
    it, None if it is of none; `blocks`: that message cannot be sent. `like` is what was mended: those that
    have it in common are one for who reads them."""

    line: int
    text: str
    number: int | None = None
    blocks: bool = False
    like: str = ""


class Entry(NamedTuple):
    """An entry: its keyword, or what stands for one, its line from 1, and its parts.

    `why` says what is wrong with one that is not understood; such a one has no parts. `note` says what was
    mended.
    """

    kind: str
    line: int
    text: str
    parts: tuple[str | None, ...] = ()
    why: str = ""
    note: str = ""

    @property
    def shown(self) -> str:
        """The beginning of its text, on one line."""
        words = " ".join(self.text[: 2 * _SHOWN].split())
        return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."

    def fault(self, words: str, number: int | None = None, blocks: bool = False) -> Fault:
        """Return a fault of it."""
        return Fault(self.line, f"line {self.line}: {self.shown}: {words}", number, blocks)

    def mended(self, words: str, number: int | None = None) -> Fault:
        """Return what was mended in it."""
        return self.fault(words, number)._replace(like=words)

    def own_fault(self, number: int | None = None, blocks: bool = False) -> Fault:
        """Return why it is left out."""
        return self.fault(f"{self.why}: left out", number, blocks)


def entries(text: str) -> Iterator[Entry]:
    """Yield the entries of a text, and what between them is none."""
    return iter(_Reader(text))


class _Reader:
    """The pass over a text. `_line` is that of the entry that is read."""

    def __init__(self, text: str) -> None:
        self._text, self._line = text, 1
        self._searched, self._found = 0, -1

    def __iter__(self) -> Iterator[Entry]:
        text, at, counted, remarked = self._text, 0, 0, self._text.rfind("*/")
        while (at := _skipped(text, at)) < len(text):
            self._line, counted = self._line + text.count("\n", counted, at), at
            begun = _KEYWORD.match(text, at)
            entry, end = self._strange(at, at < remarked) if begun is None else self._entry(begun)
            yield entry
            at = max(end, at + 1)

    def _made(self, kind: str, at: int, end: int, why: str = "", note: str = "") -> tuple[Entry, int]:
        """Return an entry without parts, of which the beginning is kept, and where it ends."""
        return Entry(kind, self._line, self._text[at : min(end, at + 3 * _SHOWN)], (), why, note), end

    def _strange(self, at: int, may_remark: bool) -> tuple[Entry, int]:
        """Return text that belongs to no entry, and where it ends: the rest of a line, or lines, or a
        remark."""
        text = self._text
        remark = _REMARK.match(text, at) if may_remark else None
        if remark is not None:
            return self._made(REMARK, at, remark.end(), "it is no remark of DBC")
        is_rest = bool(text[text.rfind("\n", 0, at) + 1 : at].strip())
        line_end = self._line_end(at)
        why = _CUT if line_end == len(text) else "it belongs to no entry"
        return self._made(REST if is_rest else STRANGE, at, line_end if is_rest else self._next(at), why)

    def _entry(self, begun: re.Match[str]) -> tuple[Entry, int]:
        """Return the entry that a keyword begins, and where it ends."""
        kind, at = begun[1], begun.start()
        form = _COMPILED.get(kind)
        if form is None:
            return self._other(kind, at)
        found = form.whole.match(self._text, begun.end())
        if found is None:
            return self._broken(kind, at, self._missing(form, begun.end()))
        return self._opened(kind, at, found) if kind in _OPEN else self._ended(kind, at, found)

    def _other(self, kind: str, at: int) -> tuple[Entry, int]:
        """Return an entry of a kind that nobody here reads, and where it ends."""
        if kind not in KEYWORDS:
            return self._broken(kind, at, "no entry of DBC has this name")
        end = self._end(kind, at)
        if self._text.startswith(";", end - 1):
            return self._made(kind, at, end)
        if end == len(self._text):
            return self._broken(kind, at, _CUT)
        return self._made(kind, at, end, note=_UNENDED)

    def _opened(self, kind: str, at: int, found: re.Match[str]) -> tuple[Entry, int]:
        """Return an entry without an end of its own. One of which nobody reads the last word may lack
        that."""
        text, end = self._text, found.end()
        note = _LAST.get(kind, "") if found.re.groups and found[found.re.groups] is None else ""
        if note and _skipped(text, end) == len(text):
            return self._broken(kind, at, _CUT)
        return Entry(kind, self._line, text[at:end], found.groups(), note=note), end

    def _ended(self, kind: str, at: int, found: re.Match[str]) -> tuple[Entry, int]:
        """Return an entry, and where it ends: with a semicolon, which a line between two entries may
        lack."""
        text = self._text
        after = _skipped(text, found.end())
        whole = Entry(kind, self._line, text[at : found.end()], found.groups())
        if text.startswith(";", after):
            return whole, after + 1
        begin = text.rfind("\n", at, after) + 1
        if begin and after < len(text) and not text[begin:after].strip() and _NEXT.match(text, begin):
            return whole._replace(note=_UNENDED), after
        why = _CUT if after == len(text) else f"{self._column(after)}: expected a semicolon"
        return self._broken(kind, at, why)

    def _missing(self, form: _Form, at: int) -> str:
        """Return what is missing in an entry, and at which column."""
        for label, part in form.parts:
            found = part.match(self._text, at)
            if found is None:
                at = _skipped(self._text, at)
                return _CUT if at == len(self._text) else f"{self._column(at)}: expected {label}"
            at = found.end()
        return "it is not understood"

    def _broken(self, kind: str, at: int, why: str) -> tuple[Entry, int]:
        end = self._end(kind, at)
        if end == len(self._text) and self._text[-1] not in "\n;":
            why = _CUT
        return self._made(kind, at, end, why)

    def _end(self, kind: str, at: int) -> int:
        """Return where an entry ends that is not understood."""
        text, after = self._text, self._next(at + 1)
        if kind in _OPEN:
            return min(self._line_end(at), after)
        near = min(after, at + _REACH)
        if (closed := _CLOSED.match(text, at, near)) is not None:
            return closed.end()
        quote = _QUOTE.search(text, at, near)
        is_bare = quote is None or ";" in text[at : quote.start()]
        whole = None if quote is None or is_bare else _TEXT_CLOSED.match(text, quote.start())
        return min(self._line_end(at), after) if whole is None else whole.end()

    def _next(self, at: int) -> int:
        """Return where the next line that begins with a keyword begins. It is looked for once."""
        if not self._searched <= at <= self._found:
            found = _NEXT.search(self._text, at)
            self._searched, self._found = at, len(self._text) if found is None else found.start()
        return self._found

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end

    def _column(self, at: int) -> str:
        return f"column {at - self._text.rfind(chr(10), 0, at)}"


def _skipped(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return at if found is None else found.end()
