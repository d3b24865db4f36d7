"""What is said about an unknown word, and text that somebody else wrote."""

import json
import sys
from unicodedata import category
from xml.etree.ElementTree import fromstring

import pytest

from bus.text import (
    BLANKS,
    after,
    amount,
    closest,
    fits,
    hidden_in,
    lines_in,
    markup,
    nearest,
    plain,
    plain_lines,
    plain_values,
    said,
    whole_in,
)

HOSTILE = "<script>\x1b[2J\r\u202e&\x00\n" + "x" * 100_000


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("17", 17), ("0017", 17), (f"{17:020}", 17), (f"{17:021}", None), ("18", None),
     ("9" * 5000, None), ("-1", None), ("\u0663", None), ("\u00b2", None), ("1_0", None), ("", None)],
)  # fmt: skip
def test_a_whole_number_is_of_few_ascii_digits(text: str, number: int | None) -> None:
    assert whole_in(text, 17) == number


def test_the_word_that_was_meant() -> None:
    assert closest("bridgse", ["buses", "bridges"]) == "bridges"
    assert closest("xyz", ["buses", "bridges"]) == ""
    assert nearest("bridgse", ["buses", "bridges"]) == '; did you mean "bridges"?'


def test_without_one_the_known_words_are_named_as_far_as_there_is_room() -> None:
    assert nearest("xyz", ["b", "a"]) == "; known here: a, b"
    assert nearest("xyz", []) == ""
    many = [f"k{number:02}" for number in range(30)]
    assert nearest("xyz", many) == f"; known here: {', '.join(many[:24])}"


def test_no_more_than_64_letters_are_compared() -> None:
    assert closest("a" * 1_000_000, ["a" * 64]) == "a" * 64
    assert closest("a" * 64, ["a" * 64], 1.0) == "a" * 64
    assert closest("a" * 65, ["a" * 65], 1.0) == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"Port already in use\r\n", "Port already in use"),
        (b"\xff\xfb\x03\xff\xfd\x2cPort already\r\nin use", "Port already in use"),
        ("Anschluss ist schön belegt".encode(), "Anschluss ist schön belegt"),
        (b"\x1b[31mred, and much more of it\x1b[0m", "?[31mred, and much more of it?[0m"),
        (b"x" * 500, "x" * 120),
        (b"", ""),
        (bytes(20), ""),
        (bytes.fromhex("0003020213051122334455667788"), ""),
        (bytes(range(256)), ""),
    ],
)
def test_what_a_peer_said_is_a_short_plain_line_if_it_was_text(data: bytes, words: str) -> None:
    assert said(data) == words
    assert after("closed", data) == (f"closed after: {words}" if words else "closed")


def test_text_of_others_is_shown_plainly_everywhere() -> None:
    assert hidden_in(plain(HOSTILE)) == ""
    assert hidden_in(plain_lines(HOSTILE).replace("\n", "")) == ""
    assert fromstring(f"<a>{markup(HOSTILE)}</a>").text == plain(HOSTILE)
    values = plain_values({HOSTILE: [HOSTILE, 1, None, {"a": (HOSTILE,)}]})
    assert json.dumps(values, ensure_ascii=False).isprintable()
    assert hidden_in("a\u00a0b") == ""
    assert hidden_in("ab\n") == "U+000A"


def test_blanks_are_those_of_unicode() -> None:
    assert [one for one in map(chr, range(sys.maxunicode + 1)) if category(one) == "Zs"] == [" ", *BLANKS]


def test_a_name_fits_by_stars_and_question_marks_alone() -> None:
    assert fits("pump-7", "pump-?")
    assert fits("pump[1]", "pump[1]")
    assert not fits("pump1", "pump[1]")
    assert fits("a]b[", "*]b[")


def test_lines_end_as_an_editor_shows_it() -> None:
    assert lines_in("a\r\nb\rc\n\nd") == ["a", "b", "c", "", "d"]
    assert lines_in("caf\x85e\u2028\x0c\x1c\n") == ["caf\x85e\u2028\x0c\x1c"]
    assert lines_in("") == []


def test_an_amount_names_one_thing_or_several() -> None:
    assert [amount(count, "frame") for count in (0, 1, 2)] == ["0 frames", "1 frame", "2 frames"]
