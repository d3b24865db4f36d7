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

_GAP: Final = r"(?:[ \t\r\n\x1a]+|//[^\n]*(?:\n|\Z))*+"
_WORD: Final = rf"(?!(?:{'|'.join(sorted(KEYWORDS))})(?!\w))\w+"
_TEXT: Final = r'"(?:\\"|[^"])*+"'
_LINE: Final = r'"(?:\\"|[^"\n])*+"'
_NUMBER: Final = r"[-+]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][-+]?\d{1,5})?(?![\w.])"
_ID: Final = r"(\d{1,19})(?!\w)"
_PAIRS: Final = rf"((?:[-+]?\d{{1,30}}(?!\w){_GAP}{_TEXT}{_GAP})*+)"
_RANGE: Final = rf"\d{{1,19}}{_GAP}-{_GAP}\d{{1,19}}"
_BEGUN: Final = r"[ \t]*(?:[A-Z][A-Z_]*_|VERSION)(?=[ \t]*[\":\w\d])(?!\w)"

Part = tuple[str, str]
"""What is expected at a place of an entry, in words and as an expression."""

_A_NAME: Final = ("a name", r"(\w+)")
_AN_ID: Final = ("the number of a message", _ID)
_FORMS: Final[dict[str, Sequence[Part]]] = {
    "VERSION": (("a text in quotes", _TEXT),),
    "NS_": (("a colon", r":?(?:[ \t\r\n]*[A-Z_]+[ \t]*(?=\r?\n|\Z))*+(?:[ \t]+[A-Z_]+_(?!\w))*+"),),
    "BS_": (("a colon", r":[^\n]*"),),
    "BU_": (("a colon", ":"), ("names", rf"((?:{_GAP},?{_GAP}{_WORD})*+)")),
    "BO_": (
        _AN_ID,
        _A_NAME,
        ("a colon", ":"),
        ("a size in bytes", r"(0|[1-9]\d{0,8})(?![\w.])"),
        ("", rf"({_WORD})?+"),
    ),
    "SG_": (
        _A_NAME,
        ("a colon, or the mark of a multiplexer", rf"(?:(M|m\d{{0,9}}M?){_GAP})?+:"),
        (
            "start|bits@order and sign",
            rf"(\d{{1,9}}){_GAP}\|{_GAP}(\d{{1,9}}){_GAP}@{_GAP}([01]){_GAP}([+-])",
        ),
        ("(factor,offset)", rf"\({_GAP}({_NUMBER}){_GAP},{_GAP}({_NUMBER}){_GAP}\)"),
        ("[low|high]", rf"\[{_GAP}({_NUMBER}){_GAP}\|{_GAP}({_NUMBER}){_GAP}\]"),
        ("a unit in quotes", rf"({_LINE})"),
        ("", rf"({_WORD}(?:[ \t]*,{_GAP}{_WORD}|[ \t]++{_WORD})*+)?+"),
    ),
    "CM_": (
        (
            "a text, or what it is about",
            rf"(?:SG_{_GAP}{_ID}{_GAP}\w+{_GAP}|BO_{_GAP}{_ID}{_GAP}|(?:EV|BU)_{_GAP}\w+{_GAP})?+(?=\")",
        ),
        ("a text in quotes", _TEXT),
    ),
    "BA_DEF_": (
        ("a name in quotes", rf"(?:(SG_|BO_|EV_|BU_){_GAP})?+({_TEXT})"),
        ("a type", r"(\w+)"),
        ("", rf"({_TEXT}(?:{_GAP},{_GAP}{_TEXT})*+|(?:{_NUMBER}{_GAP})*+)"),
    ),
    "BA_DEF_DEF_": (("a name in quotes", rf"({_TEXT})"), ("a value", rf"({_TEXT}|{_NUMBER})")),
    "BA_": (
        ("a name in quotes", rf"({_TEXT})"),
        ("", rf"((?:BO_{_GAP}{_ID}|SG_{_GAP}{_ID}{_GAP}\w+|(?:BU|EV)_{_GAP}\w+){_GAP})?+"),
        ("a value", rf"({_TEXT}|{_NUMBER})"),
    ),
    "VAL_": (("a name", rf"(?:{_ID}{_GAP})?+(\w+)"), ("", _PAIRS)),
    "VAL_TABLE_": (_A_NAME, ("", _PAIRS)),
    "SIG_VALTYPE_": (_AN_ID, _A_NAME, ("a type", rf"(:?){_GAP}(\d)(?!\w)")),
    "SG_MUL_VAL_": (_AN_ID, _A_NAME, _A_NAME, ("ranges", rf"({_RANGE}(?:{_GAP},{_GAP}{_RANGE})*+)")),
    "BO_TX_BU_": (_AN_ID, ("a colon", ":"), ("names", rf"(\w+(?:{_GAP},{_GAP}\w+)*+)")),
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
_CLOSED: Final = re.compile(rf"(?:[^\";]|{_TEXT})*+;")
_QUOTE: Final = re.compile(r'(?<!\\)"')
_TEXT_CLOSED: Final = re.compile(rf"{_TEXT}[ \t\r\n]*;")
_REMARK: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


STRANGE, REST, REMARK = "", ";", "/"
"""What belongs to no entry, in the place of a keyword: whole lines, the rest of one, and a remark."""


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
    at, counted, line, remarked = 0, 0, 1, text.rfind("*/")
    while (at := _skipped(text, at)) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        begun = _KEYWORD.match(text, at)
        entry, end = _strange(text, at, line, at < remarked) if begun is None else _entry(text, begun, line)
        yield entry
        at = max(end, at + 1)


def _skipped(text: str, at: int) -> int:
    found = _SKIPPED.match(text, at)
    return at if found is None else found.end()


def _strange(text: str, at: int, line: int, may_remark: bool) -> tuple[Entry, int]:
    """Return text that belongs to no entry, and where it ends: the rest of a line, or lines, or a remark."""
    remark = _REMARK.match(text, at) if may_remark else None
    if remark is not None:
        return Entry(REMARK, line, text[at : at + 3 * _SHOWN], (), "it is no remark of DBC"), remark.end()
    is_rest = bool(text[text.rfind("\n", 0, at) + 1 : at].strip())
    end = _line_end(text, at) if is_rest else _next(text, at)
    why = "it belongs to no entry"
    if _line_end(text, at) == len(text):
        why = _CUT
    return Entry(REST if is_rest else STRANGE, line, text[at : min(end, at + 3 * _SHOWN)], (), why), end


def _entry(text: str, begun: re.Match[str], line: int) -> tuple[Entry, int]:
    """Return the entry that a keyword begins, and where it ends."""
    kind, at = begun[1], begun.start()
    form = _COMPILED.get(kind)
    if form is None:
        return _other(text, kind, at, line)
    found = form.whole.match(text, begun.end())
    if found is None:
        return _broken(text, kind, at, line, _missing(text, form, begun.end()))
    if kind in _OPEN:
        return _opened(text, kind, at, line, found)
    return _ended(text, kind, at, line, found)


def _other(text: str, kind: str, at: int, line: int) -> tuple[Entry, int]:
    """Return an entry of a kind that nobody here reads, and where it ends."""
    if kind not in KEYWORDS:
        return _broken(text, kind, at, line, "no entry of DBC has this name")
    end = _end(text, kind, at)
    if text.startswith(";", end - 1):
        return Entry(kind, line, text[at : min(end, at + 3 * _SHOWN)]), end
    if end == len(text):
        return _broken(text, kind, at, line, _CUT)
    return Entry(kind, line, text[at : min(end, at + 3 * _SHOWN)], note=_UNENDED), end


def _opened(text: str, kind: str, at: int, line: int, found: re.Match[str]) -> tuple[Entry, int]:
    """Return an entry without an end of its own. One of which nobody reads the last word may lack that."""
    if kind not in _LAST or found[found.re.groups] is not None:
        return Entry(kind, line, text[at : found.end()], found.groups()), found.end()
    if _skipped(text, found.end()) == len(text):
        return _broken(text, kind, at, line, _CUT)
    return Entry(kind, line, text[at : found.end()], found.groups(), note=_LAST[kind]), found.end()


def _ended(text: str, kind: str, at: int, line: int, found: re.Match[str]) -> tuple[Entry, int]:
    """Return an entry, and where it ends: with a semicolon, which a line between two entries may lack."""
    after = _skipped(text, found.end())
    whole = text[at : found.end()], found.groups()
    if text.startswith(";", after):
        return Entry(kind, line, *whole), after + 1
    begin = text.rfind("\n", at, after) + 1
    if begin and after < len(text) and not text[begin:after].strip() and _NEXT.match(text, begin):
        return Entry(kind, line, *whole, note=_UNENDED), after
    why = _CUT if after == len(text) else f"{_column(text, after)}: expected a semicolon"
    return _broken(text, kind, at, line, why)


def _missing(text: str, form: _Form, at: int) -> str:
    """Return what is missing in an entry, and at which column."""
    for label, part in form.parts:
        found = part.match(text, at)
        if found is None:
            at = _skipped(text, at)
            return _CUT if at == len(text) else f"{_column(text, at)}: expected {label}"
        at = found.end()
    return "it is not understood"


def _column(text: str, at: int) -> str:
    return f"column {at - text.rfind(chr(10), 0, at)}"


def _broken(text: str, kind: str, at: int, line: int, why: str) -> tuple[Entry, int]:
    end = _end(text, kind, at)
    if end == len(text) and text[-1] not in "\n;":
        why = _CUT
    return Entry(kind, line, text[at : min(end, at + 3 * _SHOWN)], (), why), end


def _end(text: str, kind: str, at: int) -> int:
    """Return where an entry ends that is not understood."""
    after = _next(text, at + 1)
    line = min(_line_end(text, at), after)
    if kind in _OPEN:
        return line
    closed = _CLOSED.match(text, at, after)
    if closed is not None:
        return closed.end()
    quote = _QUOTE.search(text, at, after)
    is_bare = quote is None or ";" in text[at : quote.start()]
    whole = None if quote is None or is_bare else _TEXT_CLOSED.match(text, quote.start())
    return line if whole is None else whole.end()


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _next(text: str, at: int) -> int:
    """Return where the next line that begins with a keyword begins."""
    found = _NEXT.search(text, at)
    return len(text) if found is None else found.start()
