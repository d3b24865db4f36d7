"""The record of the protocol of text lines."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from bridges.items import Items
from bridges.protocols.endings import other_end
from bridges.protocols.lines.places import DATA, check_sign, groups_in, places_in, places_of, start_of
from bridges.protocols.protocol import Problem, Protocol, Way
from bus.key_types import Names, PatternKey, pattern_in
from bus.needs import Library, Need
from bus.schema import AnyText, Check, Range, Signs, Where
from bus.wire.frame import DATA_BYTES_MAX
from bus.wire.notation import text_of

RE2: Final = Library("re2", "google-re2", "lines")
DELIMITER_BYTES_MAX = 4
LINE_ENDS = (b"\r", b"\n")
_ESCAPE: Final = re.compile(r"\\(?:[0abefnrtv]|x[0-9a-fA-F])")


def check_delimiter(text: str) -> None:
    """Raise ValueError for a text that is no delimiter."""
    if not 1 <= len(text) <= DELIMITER_BYTES_MAX or any(ord(one) > 255 for one in text):
        raise ValueError(f"a delimiter is 1 to {DELIMITER_BYTES_MAX} bytes, each written as one character")


Expression = Annotated[str, AnyText(), "an RE2 expression"]
Delimiter = Annotated[str, AnyText(), Signs(), Check(check_delimiter, "1 to 4 characters, one a byte")]


def escape_problems(key: str, delimiter: str) -> Iterator[Problem]:
    """Yield a warning for a delimiter that was meant to be a sign of another kind."""
    if found := _ESCAPE.search(delimiter):
        text = f"{key}: {found[0]} is a backslash and {found[0][1:]!r}: write it in double quotes"
        yield Problem(text, is_error=False)


def expression_problems(
    key: str, expressions: Iterable[str], is_text: bool, where: Where | None = None
) -> Iterator[Problem]:
    """Yield a problem for each expression that RE2 does not take; none without it, which its need tells."""
    from bridges.protocols.lines.matching import compiled

    for expression in expressions:
        try:
            compiled(expression, is_text)
        except ImportError:
            return
        except ValueError as error:
            yield Problem(f"{key}: {error}", where=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Protocol):
    """Lines of text, each of which is the data of a frame."""

    MAKE: ClassVar = "bridges.protocols.lines.translator:LinesTranslator"
    key: ClassVar = "lines"
    help: ClassVar = "lines of text"
    items: ClassVar[tuple[Items, ...]] = ("bytes", "datagrams")
    named: ClassVar = True

    receive: Annotated[Names, "pattern of each line; may hold `{group}` of `match`"] = ("lines",)
    match: Annotated[
        Expression | Mapping[Expression, Names] | None,
        "RE2 expression that a line begins with (its group `data` is the data, with the minus of its group "
        "`sign`; else the whole line); or several, each with the pattern of its lines",
    ] = None
    unmatched: Annotated[Names | None, "pattern of other lines; without it they are dropped"] = None
    send: Annotated[
        Names | Mapping[PatternKey, Annotated[str, AnyText()]] | None,
        "pattern of the frames whose data leave as lines; or patterns, each with a template such as "
        '`"SET {1} {data}\\r\\n"`, where `{1}` is the first token behind the pattern; without it, none',
    ] = None
    delimiter: Annotated[
        Delimiter | None, "end of a line; by default LF, or CR LF. A LF behind CR is dropped"
    ] = None
    longest_bytes: Annotated[int, Range(1, DATA_BYTES_MAX), "the longest line"] = DATA_BYTES_MAX
    encoding: Annotated[Literal["none", "ascii", "utf-8"], "other lines are dropped, both ways"] = "none"

    def check(self) -> None:
        for expression, names in self.matches.items():
            groups = groups_in(expression)
            _check_places(names, groups, f"match has no such group in {expression[:64]}")
            check_sign(expression, names)
        if not self.matches:
            _check_places(self.receive, set(), "there is no match")
            if self.unmatched is not None:
                raise ValueError("unmatched without match: every line goes by receive")
        elif isinstance(self.match, Mapping) and self.receive != ("lines",):
            raise ValueError("receive and patterns under match: leave receive out")
        _check_places(self.unmatched or (), set(), "what does not match has no groups")
        for template in self.templates.values():
            _check_template(template, self.codec)
        if self.encoding == "utf-8" and not self.ending.isascii():
            raise ValueError("a delimiter that is not ASCII is in no line of UTF-8: use encoding: none")

    @property
    def codec(self) -> str:
        """The encoding of templates: UTF-8, or a byte for each character."""
        return "utf-8" if self.encoding == "utf-8" else "latin-1"

    @property
    def matches(self) -> Mapping[str, Names]:
        """The expressions in their order, each with the pattern of its lines."""
        if isinstance(self.match, str):
            return {self.match: self.receive}
        return self.match or {}

    @property
    def templates(self) -> Mapping[Names, str]:
        """The templates by pattern: the data and the delimiter, if `send` has none."""
        if isinstance(self.send, Mapping):
            return {pattern_in(text): template for text, template in self.send.items()}
        return {} if self.send is None else {self.send: f"{{{DATA}}}" + (self.delimiter or "\n")}

    @property
    def ending(self) -> bytes:
        """The bytes that end a line."""
        return (self.delimiter or "\n").encode("latin-1")

    @property
    def forbidden(self) -> tuple[bytes, ...]:
        """The bytes that data must not hold: they would end the line as those end that come, or by the end
        of a template."""
        texts = [text.encode(self.codec) for text in self.templates.values()]
        own = any(text.endswith(LINE_ENDS) and not text.endswith(self.ending) for text in texts)
        is_line_end = set(self.ending) <= set(b"\r\n")
        return (*(LINE_ENDS if own or is_line_end else ()), *(() if is_line_end else (self.ending,)))

    @property
    def noun(self) -> str:
        return "a line that matches" if self.matches and self.unmatched is None else "a line"

    def guess(self, sample: bytes, guess: str) -> str:
        return other_end(self.ending, sample, guess)

    @property
    def way(self) -> Way:
        inward = [*map(start_of, self.matches.values())] or [self.receive]
        inward += [self.unmatched] if self.unmatched is not None else []
        return Way(tuple(dict.fromkeys(inward)), tuple(self.templates))

    def needs(self) -> Iterator[Need]:
        if self.matches:
            yield RE2

    def problems(self) -> Iterator[Problem]:
        if self.matches:
            yield from expression_problems("match", self.matches, self.encoding != "none")
        yield from escape_problems("delimiter", self.delimiter or "")
        for names, template in self.templates.items():
            if not template.encode("latin-1", "replace").endswith((self.ending, *LINE_ENDS)):
                text = f"send: the template of {text_of(names)} ends no line: add its end, in double quotes"
                yield Problem(text, is_error=False)


def _check_places(names: Names, groups: set[str], why: str) -> None:
    """Raise ValueError if a place of a pattern is none of these groups."""
    unknown = [place for place in places_of(names) if place not in groups]
    if unknown:
        raise ValueError(f"{text_of(names)}: nothing fills {{{unknown[0]}}}: {why}")


def _check_template(template: str, codec: str) -> None:
    try:
        template.encode(codec)
    except UnicodeEncodeError:
        raise ValueError(
            "send: a character of the template is more than a byte: use encoding: utf-8"
        ) from None
    wrong = [place for place in places_in(template) if place != DATA and not place.isdigit()]
    if wrong:
        raise ValueError(
            f"send: {{{wrong[0]}}} is no place of a template: use {{{DATA}}}, or {{1}} for the next token"
        )
