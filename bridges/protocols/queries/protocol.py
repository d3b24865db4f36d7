"""The records of queries: a table of texts that are sent, and of what their answers mean."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from bridges.items import Exchange, Items
from bridges.protocols.asking import Asking, counted
from bridges.protocols.endings import without_end
from bridges.protocols.lines.places import DATA, check_sign, places_in
from bridges.protocols.lines.protocol import (
    LINE_ENDS,
    RE2,
    Delimiter,
    Expression,
    check_delimiter,
    escape_problems,
    expression_problems,
)
from bridges.protocols.protocol import Cycle, Problem
from bridges.protocols.queries.coding import Kind, Raw, TextCoding, raw_in
from bridges.protocols.rows import Asked
from bus.key_types import Delay
from bus.needs import Need
from bus.quantity.forms import Form
from bus.quantity.quantity import Quantity
from bus.quantity.scale import Scale
from bus.quantity.settings import check_scale
from bus.schema import AnyText, Check, Key, Length, Range, Single, check_fields
from bus.wire.frame import DATA_BYTES_MAX

SHORT_BYTES = 8
"""The length that an answer is taken to have, where `check` compares the table with the line."""


def _check_bytes(text: str) -> None:
    if any(ord(one) > 255 for one in text):
        raise ValueError("a character is more than a byte")


def _check_end(text: str) -> None:
    if text:
        check_delimiter(text)


Said = Annotated[str, AnyText(), Length(0, 255), Check(_check_bytes, "text, a character for each byte")]
QueryEnd = Annotated[str, AnyText(), Check(_check_end, "up to 4 characters, one a byte")]
Answer = Annotated[str, AnyText(), Length(1, 64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Asked):
    """One value: the text that asks for it, and what the answer means."""

    ask: Annotated[Said | None, "the text that is sent for the value; rows with the same share a request"] = (
        None
    )
    type: Annotated[
        Kind, "of the answer: a decimal number, any text, or a number in hexadecimal digits, blanks left out"
    ] = "number"
    match: Annotated[
        Expression | None,
        "RE2 expression that the answer, or a line in it, begins with: its group `data` is the value, with "
        "the minus of its group `sign`; without it, the whole is",
    ] = None
    no_value: Annotated[
        tuple[Answer, ...], Length(0, 16), Single(), "answers by which the device says that it has no value"
    ] = ()
    choices: Annotated[
        Annotated[Mapping[Answer, Annotated[str, Length(1, 64)]], Length(0, 4096)],
        "text that stands for some answers",
    ] = field(default_factory=dict)
    template: Annotated[
        Said | None, Key("set"), "the text that writes a value, such as `VOLT {data}`, with `write: true`"
    ] = None
    ack: Annotated[
        Expression | None,
        "RE2 expression that the answer to `set` begins with; without it the device answers nothing to that",
    ] = None
    fits: Annotated[
        Expression | None, "RE2 expression which a whole text is that may be written, where no choices are"
    ] = None
    timeout_ms: Annotated[Delay | None, "how long its answer may take; by default that of the protocol"] = (
        None
    )

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_value()
        self.check_asked()
        self._check_ways()
        self._check_set()
        check_sign(self.match or "")

    def _check_value(self) -> None:
        check_scale(self.scale, self.offset, "text" if self.is_text else "")
        if any(said != said.strip() for said in (*self.no_value, *self.choices)):
            raise ValueError("no_value and choices: an answer is compared without the blanks around it")
        if len(self.texts) < len(self.choices):
            raise ValueError("two choices are the same answer")
        if len(set(self.choices.values())) < len(self.choices):
            raise ValueError("two choices have the same text")

    def _check_ways(self) -> None:
        if self.read and self.ask is None:
            raise ValueError("ask: the text that asks for the value; or read: false, if it is only written")
        if not self.read and self.ask is not None:
            raise ValueError("ask is of a value that is read: leave it out, or read: false")
        if not self.read and (self.match is not None or self.no_value):
            raise ValueError("match and no_value are of values that are read")
        if self.write and self.template is None:
            raise ValueError('write: true needs set: the text that writes the value, such as "VOLT {data}"')

    def _check_set(self) -> None:
        given = {"set": self.template, "ack": self.ack, "fits": self.fits}
        if not self.write and (found := [key for key, value in given.items() if value is not None]):
            raise ValueError(f"{found[0]} is of values that are written: add write: true")
        if self.template is not None and {*places_in(self.template)} != {DATA}:
            raise ValueError(f"set: {{{DATA}}} is the place of the value, and there is no other")
        if self.write and self.type == "hex":
            raise ValueError("type hex is only read")
        for said in self.choices if self.write else ():
            _check_bytes(said)
        if self.fits is not None and (self.type != "text" or self.choices):
            raise ValueError("fits is of text without choices")
        if self.write and self.type == "text" and not self.choices and self.fits is None:
            raise ValueError("write: true of text needs choices, or fits: what the device may be told")

    @property
    def value_type(self) -> str:
        return self.type

    @property
    def is_text(self) -> bool:
        return self.type == "text"

    @property
    def is_number(self) -> bool:
        return self.type == "number" and not self.choices

    @property
    def said(self) -> Iterator[str]:
        """The texts that are sent for the value, and those that stand in one of them."""
        yield from (text for text in (self.ask, self.template) if text is not None)
        yield from self.choices if self.write else ()

    @property
    def expressions(self) -> Mapping[str, str]:
        """The expressions by the key of their setting."""
        given = {"match": self.match, "ack": self.ack, "fits": self.fits}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def texts(self) -> Mapping[Raw, str]:
        """The choices by what the device says. Raises ValueError for one that it never does."""
        try:
            return {raw_in(self.type, said): text for said, text in self.choices.items()}
        except ValueError:
            raise ValueError(f"choices: an answer of type {self.type} is a number") from None

    def coding(self, fits: Callable[[bytes], bool] | None = None) -> TextCoding:
        """Return how the value is read and written. `fits` tells whether a text may be."""
        none = {
            *self.no_value,
            *(raw for said in self.no_value if (raw := _raw(self.type, said)) is not None),
        }
        return TextCoding(self.type, Scale.of(self.scale, self.offset), frozenset(none), self.texts, fits)

    def quantity(self, form: Form) -> Quantity:
        scale = Scale.of(self.scale, self.offset)
        choices = {scale.value(raw): text for raw, text in self.texts.items() if not isinstance(raw, str)}
        return replace(Asked.quantity(self, form), choices=choices)


def _raw(kind: Kind, said: str) -> Raw | None:
    try:
        return raw_in(kind, said)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries(Asking):
    """Lines of text to devices that answer when they are asked: this gateway is the one that asks."""

    MAKE: ClassVar = "bridges.protocols.queries.translator:QueriesTranslator"
    key: ClassVar = "queries"
    help: ClassVar = "lines of text that ask: SCPI, scales, ELM327"
    items: ClassVar[tuple[Items, ...]] = ("bytes",)

    queries: Annotated[tuple[Query, ...], Length(1, 4096), "the values"]
    begin: Annotated[
        tuple[Said, ...],
        Length(0, 64),
        Single(),
        "texts that are sent before the first query after each opening and takeover; their answers are "
        "thrown away",
    ] = ()
    delimiter: Annotated[QueryEnd | None, "end of every text that is sent; by default LF"] = None
    answer_delimiter: Annotated[Delimiter | None, "end of an answer; by default the last of `delimiter`"] = (
        None
    )
    timeout_ms: Annotated[Delay, "how long an answer may take, without its time on the line"] = 500
    silence_ms: Annotated[
        Delay,
        "what comes after a timeout, and after what was not asked for, is thrown away up to such a silence",
    ] = 100
    pause_ms: Annotated[
        Annotated[float, Range(0, 86_400_000)], "what the device needs between an answer and the next request"
    ] = 0
    longest_bytes: Annotated[int, Range(1, DATA_BYTES_MAX), "the longest answer"] = DATA_BYTES_MAX

    @property
    def rows(self) -> Sequence[Query]:
        return self.queries

    def check(self) -> None:
        Asking.check(self)
        if not self.sent_end and self.answer_delimiter is None:
            raise ValueError('answer_delimiter: nothing ends a request, so say what ends an answer, as "\\n"')
        said = [text for row in self.queries for text in row.said]
        if not self.sent_end and "" in (*self.begin, *said):
            raise ValueError("a text is empty, and so is delimiter: nothing would be sent")
        ends = {"\r", "\n", *([self.sent_end] if self.sent_end else [])}
        for text in (*self.begin, *said):
            if any(end in text for end in ends):
                raise ValueError(f"{text[:64]!r} has a line end in it: the delimiter is added, one to each")

    @property
    def sent_end(self) -> str:
        """The end of every text that is sent."""
        return "\n" if self.delimiter is None else self.delimiter

    @property
    def ending(self) -> bytes:
        """The bytes that end an answer."""
        return (self.answer_delimiter or self.sent_end[-1:]).encode("latin-1")

    @property
    def has_prompt(self) -> bool:
        """Whether what ends an answer ends no line: nothing of it comes later."""
        return not self.ending.endswith(LINE_ENDS)

    @property
    def noun(self) -> str:
        return "an answer"

    def guess(self, sample: bytes, guess: str) -> str:
        return without_end([self.ending], sample, f"another answer_delimiter, {guess}")

    def requests(self) -> list[tuple[Query, ...]]:
        """Return the values, those together that one request asks for."""
        found = dict[tuple[str, float, float], list[Query]]()
        for row in self.queries:
            if row.ask is not None:
                key = row.ask, row.poll_ms or self.poll_ms, row.timeout_ms or self.timeout_ms
                found.setdefault(key, []).append(row)
        return [tuple(rows) for rows in found.values()]

    def cycles(self) -> Iterator[Cycle]:
        more = len(self.sent_end) + len(self.ending) + SHORT_BYTES
        for first, *_ in self.requests():
            exchange = Exchange(len(first.ask or "") + more, self.pause_ms / 2000, 0.0)
            yield Cycle(named(first), (first.poll_ms or self.poll_ms) / 1000, exchange)

    def label(self) -> str:
        return f"queries, {counted(len(self.queries), 'value')}"

    def needs(self) -> Iterator[Need]:
        if any(row.expressions for row in self.queries):
            yield RE2

    def problems(self) -> Iterator[Problem]:
        yield from Asking.problems(self)
        for row in self.queries:
            for key, expression in row.expressions.items():
                yield from expression_problems(key, (expression,), False, row.where)
        yield from _wholes(self.queries)
        for key in ("delimiter", "answer_delimiter"):
            text = self.sent_end if key == "delimiter" else self.answer_delimiter
            yield from escape_problems(key, text or "")
        polls_ms = [first.poll_ms or self.poll_ms for first, *_ in self.requests()]
        if (share := sum(self.pause_ms / poll_ms for poll_ms in polls_ms)) > 1:
            text = f"at their poll_ms, the pauses between queries alone take {share:.0%} of the time"
            yield Problem(f"{text}: lengthen poll_ms, or shorten pause_ms", is_error=False)


def named(row: Query) -> str:
    """Return the name of a query, for people: what is sent."""
    return f'query "{row.template if row.ask is None else row.ask}"'


def _wholes(rows: Sequence[Query]) -> Iterator[Problem]:
    """Yield rows whose `match` does not say where in an answer the number is."""
    for row in rows:
        if row.match is not None and row.type != "text" and f"(?P<{DATA}>" not in row.match:
            text = f"match: the whole answer has to be a number, unless a group says where it is: (?P<{DATA}>"
            yield Problem(f"{text}[0-9.]+)", is_error=False, where=row.where)
