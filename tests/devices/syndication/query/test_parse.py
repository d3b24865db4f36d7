"""What a text means: precedence, spellings, the normal form, errors with positions, bounds."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devices.syndication.query import Query, QueryError, Selection, parse, selection, subscription
from devices.syndication.query.evaluate import PATTERN_MEMORY
from devices.syndication.query.parse import (
    CONDITIONS,
    DEPTH,
    INSTRUCTIONS,
    PATTERN_LETTERS,
    PATTERNS,
    TEXT_BYTES,
)
from devices.syndication.query.tree import Node, text_of
from tests.devices.syndication.query.refusals import said
from tests.devices.syndication.query.trees import TREES

pytest.importorskip("lark", reason="the extra syndication is not installed")
pytest.importorskip("re2", reason="the extra syndication is not installed")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Room = '410' and Type != 'Camera'", 'Room = "410" and Type != "Camera"'),
        ("  has\tMetadata/System\n", "has Metadata/System"),
        ("a=1 OR b=2 And NOT c=3", "a = 1 or b = 2 and c != 3"),
        ("a = 1 or (b = 2 and (c = 3))", "a = 1 or b = 2 and c = 3"),
        ("(a = 1 or b = 2) and c = 3", "(a = 1 or b = 2) and c = 3"),
        ("(has a and has b) and has c", "has a and has b and has c"),
        ("not (has a or has b)", "not (has a or has b)"),
        ("not a = 1 and has b", "a != 1 and has b"),
        ("not not has a", "has a"),
        ("not a != 1", "a = 1"),
        ("['a'] in Tags", 'Tags = "a"'),
        ("['b', \"a\", 2, 2.0, true, 'b'] in Tags", '[2, true, "a", "b"] in Tags'),
        ("a = 'x' or has b or a = 'y' or [2] in a", '[2, "x", "y"] in a or has b'),
        ("a != 1 and a != 2", "a != 1 and a != 2"),
        ("a = 1.50e2", "a = 150"),
        ("a = -0.0", "a = 0"),
        ("a = 1e300", "a = 1e+300"),
        ("a = 18446744073709551615", "a = 18446744073709551615"),
        ("a = -9223372036854775808", "a = -9223372036854775808"),
        ("a = TRUE or a = false", "[false, true] in a"),
        ("'a b' = 1", '"a b" = 1'),
        ("andere = 1 and Hash = 2 and inner like 'x'", 'andere = 1 and Hash = 2 and inner like "x"'),
        ("In = 1 and has not", '"In" = 1 and has "not"'),
        ("Größe/m = 1", "Größe/m = 1"),
        ("haſ = 1 and 'ſelect' = 2", "haſ = 1 and ſelect = 2"),  # keywords for re.IGNORECASE
        ("", ""),
        (" \n ", ""),
    ],
)
def test_a_text_has_a_normal_form(text: str, normal: str) -> None:
    assert parse(text).text == normal
    assert parse(normal) == parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'a = "say \"no\""', 'say "no"'),
        (r"a = 'it\'s'", "it's"),
        (r"a = 'C:\new\\x'", r"C:\new\x"),
        (r"a = '\d'", r"\d"),
        (r"a = '\\'", "\\"),
        ("a = 'two\nlines'", "two\nlines"),
        ("a = 'two\\\nlines'", "two\\\nlines"),
        ("a = '\"'", '"'),
    ],
)
def test_a_backslash_escapes_quotes_and_itself(text: str, value: str) -> None:
    assert parse(text).matches({"a": value})


def test_the_keys_of_a_query() -> None:
    query = parse("Room = 1 and (has 'a b' or not Type like 'x') and ['1'] in Room")
    assert query.keys == {"Room", "a b", "Type"}
    assert parse("").keys == frozenset()


def test_a_selection() -> None:
    found = selection("Select Distinct Room Where has Thermostat")
    assert (found.key, found.query) == ("Room", parse("has Thermostat"))
    assert found.text == "select distinct Room where has Thermostat"
    assert selection("select distinct 'a b'").text == 'select distinct "a b"'
    assert selection("select distinct where where has select").query.keys == {"select"}
    with pytest.raises(QueryError, match="character 8: expected \"distinct\", but found 'Room'"):
        selection("select Room")


@pytest.mark.parametrize(
    "text", ["select = 1", "Select != 'x'", "SELECT like 'x'", "select_1 = 1", "selected = 1"]
)
def test_a_key_select_is_a_key_in_a_subscription(text: str) -> None:
    assert subscription(text) == (parse(text), None)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select", 'character 7: expected "distinct", but found the end'),
        (" Select Room", "character 9: expected \"distinct\", but found 'Room'"),
        ("select distinct Room where Type", 'character 32: expected "=", "!=" or "like", but found the end'),
        (
            "has Room and select distinct Room",
            'character 21: expected "=", "!=" or "like", but found \'distinct\'',
        ),
    ],
)
def test_the_errors_of_a_selection_in_a_subscription(text: str, what: str) -> None:
    with pytest.raises(QueryError) as caught:
        subscription(text)
    assert str(caught.value) == what


A_VALUE = "expected a value (text in quotes, a number, true or false), but found"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Room = ", f"character 8: {A_VALUE} the end"),
        ("Room =\n410a", f"character 8: {A_VALUE} '410a'"),
        ("Room == '4'", f"character 7: {A_VALUE} '='"),
        ("a = 007", f"character 5: {A_VALUE} '007'"),
        ("a = truest", f"character 5: {A_VALUE} 'truest'"),
        ("a = null", f"character 5: {A_VALUE} 'null'"),
        ("[] in a", f"character 2: {A_VALUE} ']'"),
        ("a = 'b", "character 5: this quote is not closed"),
        (r"a = 'b\'", "character 5: this quote is not closed"),
        ("Room", 'character 5: expected "=", "!=" or "like", but found the end'),
        ("a < 5", 'character 3: expected "=", "!=" or "like", but found \'<\''),
        ("a = 1 b = 2", 'character 7: expected "and", "or" or the end, but found \'b\''),
        ("a = 1 and", "character 10: expected a condition, but found the end"),
        ("(a = 1", 'character 7: expected ")", but found the end'),
        ("a = 1)", "character 6: expected the end, but found ')'"),
        ("has", "character 4: expected a key, but found the end"),
        ("[1 2] in a", 'character 4: expected "," or "]", but found \'2]\''),
        ("[1] a", "character 5: expected \"in\", but found 'a'"),
        ("a like 5", "character 8: expected a pattern in quotes, but found '5'"),
        ("has " + "@" * 99, f"character 5: expected a key, but found '{'@' * 24}...'"),
        ("has " + "@" * 24, f"character 5: expected a key, but found '{'@' * 24}'"),
        ("= 1", "character 1: expected a condition, but found '='"),
        ("a = 1 ''", """character 7: expected "and", "or" or the end, but found "''" """[:-1]),
        ("a = 1e999", "character 5: the number does not fit into 64 bits"),
        ("a = 18446744073709551616", "character 5: the number does not fit into 64 bits"),
        ("a = -9223372036854775809", "character 5: the number does not fit into 64 bits"),
        ("a like '(b\n'", r"character 8: the pattern is refused: missing ): (b\n"),
        ("has b or a like '(?=b)'", "character 17: the pattern is refused: invalid perl operator: (?="),
        ("a = '\ud800'", "character 6: this is half of a surrogate pair, and no character"),
    ],
)
def test_an_error_says_where_and_what(text: str, what: str) -> None:
    assert said(text) == what


def test_a_query_has_bounds() -> None:
    parse("has " + "k" * (TEXT_BYTES - 4))
    assert "longer than" in said("has " + "k" * (TEXT_BYTES - 3))
    assert "longer than" in said("has " + "ö" * (TEXT_BYTES // 2))
    parse(" or ".join(["has a"] * CONDITIONS))
    assert said(" or ".join(["has a"] * (CONDITIONS + 1))).endswith("129 conditions, but may have 128")
    parse(" or ".join(f"a like '{n % PATTERNS}'" for n in range(40)))
    assert "9 different patterns" in said(" or ".join(f"a like '{n}'" for n in range(PATTERNS + 1)))
    parse(f"a like '{'b' * PATTERN_LETTERS}'")
    assert "pattern is longer" in said(f"a like '{'b' * (PATTERN_LETTERS + 1)}'")


def test_a_query_says_what_memory_it_takes() -> None:
    short, long = parse("a = 1"), parse("a = 'one' and b = 'two'")
    assert 0 < short.memory_bytes < long.memory_bytes < PATTERN_MEMORY
    two = parse("a like 'b' or a like 'c' or b like 'c'")
    assert 2 * PATTERN_MEMORY < two.memory_bytes < 3 * PATTERN_MEMORY


def nested(levels: int) -> str:
    text = "has a"
    for level in range(levels):
        text = f"has b {('and', 'or')[level % 2]} ({text})"
    return text


def test_a_query_has_a_depth() -> None:
    assert parse(nested(DEPTH)).matches({"b": 1})
    assert said(nested(DEPTH + 1)).startswith("character 1: the query has 33 levels")
    assert "levels" in said(nested(200))
    assert parse("(" * 2000 + "has a" + ")" * 2000).text == "has a"
    assert parse("not " * 1000 + "has a").text == "has a"


def test_the_patterns_of_a_query_share_a_bound() -> None:
    large = "b{70}"
    assert "pattern is refused: pattern too large" in said("a like '.{1000}'")
    parse(f"a like '{large}c' or a like '{large}d'")
    text = f"a like '{large}c' or a like '{large}d' or a like '{large}e' or a like '{large}f'"
    assert f"more than {INSTRUCTIONS} instructions" in said(text)
    parse(" or ".join(f"k{n} like '{large}'" for n in range(3)))
    assert f"more than {INSTRUCTIONS} instructions" in said(" or ".join(["k like 'b{70}'"] * 4))


def test_a_query_says_what_it_costs_to_compare_an_element() -> None:
    assert parse("a = 'b' and not a = 'c' and b = 7 or ['x', 'y'] in c and has d").comparisons == {
        "a": 8,
        "b": 40,
        "c": 40,
    }


def test_a_query_says_how_many_instructions_look_at_a_key() -> None:
    one = parse("a like 'b'").instructions["a"]
    assert one > 0
    assert parse("a like 'b' or has c and b like 'b' or not a like 'b'").instructions == {
        "a": 2 * one,
        "b": one,
    }
    assert parse("a = 'b'").instructions == {}


@given(TREES)
def test_the_normal_form_parses_to_itself(tree: Node) -> None:
    normal = parse(text_of(tree)).text
    assert parse(normal).text == normal


PIECES = st.sampled_from(
    (
        "(",
        ")",
        "[",
        "]",
        ",",
        "=",
        "!=",
        "and",
        "or",
        "not",
        "has",
        "like",
        "in",
        "a",
        "'b'",
        '"',
        "'",
        "\\",
        "1",
    )
)


@given(st.text() | st.lists(PIECES | st.text(max_size=2)).map(" ".join) | st.lists(PIECES).map("".join))
@example("\x00")
@example("a like '\x00'")
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    for read in (parse, selection):
        found = answer(read, text)
        if isinstance(found, QueryError):
            assert str(found).isprintable()
            assert 1 <= found.position <= len(text) + 1
        else:
            assert read(found.text).text == found.text


@given(st.lists(PIECES).map(" ".join).map("select ".__add__) | st.lists(PIECES).map(" ".join))
@example("select distinct like like 'x'")
def test_a_subscription_is_a_query_or_a_selection_never_both(text: str) -> None:
    query, chosen = answer(parse, text), answer(selection, text)
    if isinstance(query, Query):
        assert subscription(text) == (query, None)
        assert isinstance(chosen, QueryError)
    elif isinstance(chosen, Selection):
        assert subscription(text) == (chosen.query, chosen.key)
    else:
        with pytest.raises(QueryError) as caught:
            subscription(text)
        assert str(caught.value) in (str(query), str(chosen))


def answer(read: Callable[[str], Query | Selection], text: str) -> Query | Selection | QueryError:
    try:
        return read(text)
    except QueryError as error:
        return error
