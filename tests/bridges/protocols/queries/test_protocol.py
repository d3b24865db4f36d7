"""The records of queries: what is refused with a reason, and what `check` finds."""

from typing import Any

import pytest

from bridges.protocols.queries.protocol import Queries, Query
from bus.quantity.quantity import Quantity
from tests.bridges.protocols.queries.bench import row, table

VOLT = {"template": "VOLT {data}", "write": True, "low": 0, "high": 30}


@pytest.mark.parametrize(
    ("ask", "settings", "why"),
    [
        (None, {}, "neither read nor written"),
        ("A?", {"write": True, "low": 0, "high": 1}, "write: true needs set"),
        ("A?", {"template": "A {data}"}, "set is of values that are written: add write: true"),
        ("A?", {"ack": "OK"}, "ack is of values that are written: add write: true"),
        ("A?", {**VOLT, "high": None}, "write: true needs min and max"),
        ("A?", {**VOLT, "low": 31}, "min is above max"),
        ("A?", {**VOLT, "template": "VOLT"}, "{data} is the place of the value"),
        ("A?", {**VOLT, "template": "VOLT {1} {data}"}, "{data} is the place of the value"),
        ("A?", {**VOLT, "type": "hex"}, "type hex is only read"),
        (
            "A?",
            {**VOLT, "type": "text", "low": None, "high": None},
            "write: true of text needs choices, or fits",
        ),
        ("A?", {**VOLT, "fits": "x"}, "fits is of text without choices"),
        ("A?", {**VOLT, "type": "text", "fits": "x"}, "min and max are of numbers, and type text is text"),
        ("A?", {"type": "text", "scale": 2}, "type text has no scale"),
        ("A?", {"scale": 0}, "scale is not 0"),
        ("A?", {"choices": {"on": "yes"}}, "choices: an answer of type number is a number"),
        ("A?", {"choices": {"1": "on", "1.0": "off"}}, "two choices are the same answer"),
        ("A?", {"choices": {"1": "on", "2": "on"}}, "two choices have the same text"),
        ("A?", {"choices": {"1 ": "on"}}, "compared without the blanks around it"),
        ("A?", {"no_value": ("--", " ---")}, "compared without the blanks around it"),
        (
            "A?",
            {**VOLT, "type": "text", "low": None, "high": None, "choices": {"λ": "on"}},
            "a character is more than a byte",
        ),
        (None, {**VOLT, "match": "(?P<data>.*)"}, "match and no_value are of values that are read"),
        (None, {**VOLT, "no_value": "-"}, "match and no_value are of values that are read"),
        ("A?", {"match": "(?P<sign>-)"}, "a group sign comes before the group data"),
        ("λ", {}, "a character is more than a byte"),
    ],
)
def test_a_row_that_does_not_fit_together_is_refused(ask: str | None, settings: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("{", r"\{")):
        row(ask, "a", **settings)


@pytest.mark.parametrize(
    ("rows", "settings", "why"),
    [
        (
            (row("A?", "a", type="text"),),
            {"form": "number"},
            "form: number has no text, and a is of type text",
        ),
        ((), {"delimiter": ""}, "answer_delimiter: nothing ends a request"),
        ((row("A?\nB?", "a"),), {}, "has a line end in it"),
        ((row("A>B", "a"),), {"delimiter": ">"}, "has a line end in it"),
        ((), {"begin": ("ATZ\r",)}, "has a line end in it"),
        (
            (row("M?", "m", type="text", template="M {data}", write=True, choices={"A\nB": "both"}),),
            {},
            "has a line end in it",
        ),
        ((row("", "a"),), {"delimiter": "", "answer_delimiter": "\n"}, "nothing would be sent"),
        ((), {"delimiter": "", "answer_delimiter": "\n", "begin": ("",)}, "nothing would be sent"),
        ((), {"replay": True}, "replay: a command to a device is never sent again"),
    ],
)
def test_a_table_that_does_not_fit_together_is_refused(rows: Any, settings: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        table(*rows, **settings)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (table(row("A?", "a"), row("B?", "a")), "the pattern a is that of another value"),
        (table(row("A?", "a", **VOLT), row("B?", "a/set")), "the pattern a/set is that of another value"),
        (
            table(row("A?", "a", match="(?P<data>")),
            "match: (?P<data>: RE2 does not take it: missing ): (?P<data>",
        ),
        (table(row("A?", "a", **VOLT, ack="a**")), "ack: a**: RE2 does not take it"),
        (table(delimiter=r"\r"), r"delimiter: \r is a backslash and 'r': write it in double quotes"),
        (table(answer_delimiter=r"\n"), r"answer_delimiter: \n is a backslash and 'n'"),
        (
            table(row("A?", "a", match="[0-9]+ kg")),
            "match: the whole answer has to be a number, unless a group",
        ),
        (table(pause_ms=500), "at their poll_ms, the pauses between queries alone take 150% of the time"),
    ],
)
def test_check_tells_each_fault_in_a_line(record: Queries, words: str) -> None:
    (problem,) = record.problems()
    assert words in problem.text
    assert "\n" not in problem.text


def test_good_tables_have_no_problem() -> None:
    read, fixed = Query(ask="C?", pattern=("c",)), row(None, "d", **{**VOLT, "low": 30})
    rows = row("A?", "a", match="(?P<data>.*)"), row(None, "b", **VOLT), read, fixed
    assert list(table(*rows).problems()) == []


def test_what_others_need_to_know_is_in_the_record() -> None:
    made = row("VOLT?", "volt", **VOLT, unit="V", choices={"0": "off"}, scale=0.1)
    record = table(made, row("*IDN?", "name", type="text"), row(None, "mode", **VOLT))
    assert record.asks
    assert record.way.inward == (("volt",), ("name",), ("mode",))
    assert record.way.outward == (("volt", "set"), ("mode", "set"))
    first, second, _ = record.quantities()
    assert first == Quantity(("volt",), "text", "V", 0, 30, {0: "off"}, writable=True)
    assert second.is_text
    assert [one.name for one in record.cycles()] == ['query "VOLT?"', 'query "*IDN?"']
    assert record.label() == "queries, 3 values"


@pytest.mark.parametrize(("delimiter", "end"), [("\n", b"\n"), ("\r\n", b"\n"), ("\r", b"\r"), (";", b";")])
def test_an_answer_ends_as_a_request_does_unless_it_is_said(delimiter: str, end: bytes) -> None:
    assert table(delimiter=delimiter).ending == end
    assert table(delimiter=delimiter, answer_delimiter=">").ending == b">"
