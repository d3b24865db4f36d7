"""The bounds of a query are those of docs/query.md, and what it says of its own size is what is counted."""

import pytest

from devices.syndication.query import Query, QueryError, parse
from devices.syndication.query.evaluate import PATTERN_MEMORY, compiled
from devices.syndication.query.parse import (
    CONDITIONS,
    DEPTH,
    INSTRUCTIONS,
    PATTERN_LETTERS,
    PATTERNS,
    TEXT_BYTES,
    subscription,
)
from devices.syndication.query.tree import Like
from tests.devices.syndication.query.refusals import said
from tests.helpers import ROOT

pytest.importorskip("lark", reason="the extra syndication is not installed")
pytest.importorskip("re2", reason="the extra syndication is not installed")

QUOTE, BACKSLASHED = '"', '\\"'
PAGE = (ROOT / "docs/query.md").read_text()


@pytest.mark.parametrize(
    "row",
    [
        f"| the text of a query, and its normal form | {TEXT_BYTES} bytes of UTF-8 |",
        f"| conditions | {CONDITIONS} |",
        f"| `and`, `or` and `not` within each other | {DEPTH} levels |",
        f"| different patterns | {PATTERNS}, each of {PATTERN_LETTERS} characters |",
        f"a pattern may take {PATTERN_MEMORY >> 10} KiB of memory |",
        f"| instructions of RE2 in the patterns of all `like` together | {INSTRUCTIONS} |",
    ],
)
def test_the_page_has_the_bounds(row: str) -> None:
    assert row in PAGE


def test_a_text_beyond_the_bound_is_refused_whatever_follows() -> None:
    longer = f"character 1: the query is longer than {TEXT_BYTES} bytes of UTF-8"
    assert said("a" * (TEXT_BYTES + 1) + "\ud800") == longer
    assert said("a" * TEXT_BYTES + "\ud800").endswith("no character")


@pytest.mark.parametrize("start", ["", "select distinct a where "])
def test_what_is_accepted_can_be_sent_again_in_its_normal_form(start: str) -> None:
    """In the normal form, a quote has a backslash."""
    quotes = (TEXT_BYTES - len(f'{start}a = ""')) // 2
    normal = f'{start}a = "{quotes * BACKSLASHED}"'
    longest, longer = (f"{start}a = '{count * QUOTE}'" for count in (quotes, quotes + 1))
    assert len(normal) == TEXT_BYTES
    assert subscription(longest) == subscription(normal)
    words = (
        f"{TEXT_BYTES + 2} bytes of UTF-8 in its normal form, in which it is kept, but may have {TEXT_BYTES}"
    )
    with pytest.raises(QueryError, match=words):
        subscription(longer)


def test_negations_are_levels_too() -> None:
    inner = "has a"
    for _ in range(DEPTH // 2):
        inner = f"has b and not ({inner})"
    assert not parse(inner).matches({})
    assert said(f"not ({inner})").endswith(f"has {DEPTH + 1} levels of and, or and not, but may have {DEPTH}")


def test_patterns_may_have_exactly_as_many_instructions_as_the_bound() -> None:
    one = "b" * 150
    left = INSTRUCTIONS - _instructions(one) - _instructions("")
    parse(f"a like '{one}' or a like '{'b' * left}'")
    assert said(f"a like '{one}' or a like '{'b' * (left + 1)}'").endswith("256 instructions of RE2")


def test_a_pattern_takes_as_many_instructions_as_the_page_says() -> None:
    assert [_instructions(one) for one in ("", "b", ".", "x{50}")] == [4, 4 + 1, 4 + 8, 4 + 50]
    assert "a letter takes one, `.` takes 8, `x{50}` takes 50, and each pattern 4 more" in PAGE


def _instructions(pattern: str) -> int:
    return parse(f"a like '{pattern}'").instructions["a"]


def test_a_group_takes_no_instruction_since_nothing_is_captured() -> None:
    assert _instructions("(b)") == _instructions("b")


def test_a_refused_pattern_is_said_once_and_not_on_the_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(QueryError, match=r"character 1: .*missing"):
        compiled(Like("a", "(b"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("text", "patterns"), [("", 0), ("has a", 0), ("a like 'b' or b like 'b'", 1)])
def test_memory_is_1_kib_with_100_bytes_a_letter_and_64_kib_a_pattern(text: str, patterns: int) -> None:
    assert parse(text).memory_bytes == 1024 + 100 * len(parse(text).text) + (patterns << 16)


def test_queries_of_one_normal_form_are_equal_whatever_was_made_of_it() -> None:
    query = parse("a like 'b'")
    other = Query(query.text, frozenset(), lambda _: False, 0, {"a": 1}, {"a": 1})
    assert query == other
    assert hash(query) == hash(other)
    assert "matches" not in repr(query)
