"""What is said about an unknown word."""

from bus.text import closest, nearest


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
