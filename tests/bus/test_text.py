"""What is said about an unknown word, and text that somebody else wrote."""

import json
from xml.etree.ElementTree import fromstring

from bus.text import closest, fits, hidden_in, markup, nearest, plain, plain_lines, plain_values

HOSTILE = "<script>\x1b[2J\r\u202e&\x00\n" + "x" * 100_000


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


def test_text_of_others_is_shown_plainly_everywhere() -> None:
    assert hidden_in(plain(HOSTILE)) == ""
    assert hidden_in(plain_lines(HOSTILE).replace("\n", "")) == ""
    assert fromstring(f"<a>{markup(HOSTILE)}</a>").text == plain(HOSTILE)
    values = plain_values({HOSTILE: [HOSTILE, 1, None, {"a": (HOSTILE,)}]})
    assert json.dumps(values, ensure_ascii=False).isprintable()
    assert hidden_in("a\u00a0b") == ""
    assert hidden_in("ab\n") == "U+000A"


def test_a_name_fits_by_stars_and_question_marks_alone() -> None:
    assert fits("pump-7", "pump-?")
    assert fits("pump[1]", "pump[1]")
    assert not fits("pump1", "pump[1]")
    assert fits("a]b[", "*]b[")
