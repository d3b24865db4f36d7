import pytest

from bus.errors import BusError, TokenError
from bus.wire.notation import name_of, names_in, pattern_of, text_of, written
from bus.wire.pattern import token


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("fridge/temp/7", ["fridge", "temp", 7]),
        ("/", []),
        ("", []),
        ('0xFF/"7"/0x', [255, "7", "0x"]),
        ('a/"buscoupler/loop"/b', ["a", "buscoupler/loop", "b"]),
        ('5"/"x', ['5"', '"x']),
        ("٣", ["٣"]),
        ('c++/"#"', ["c++", "#"]),
    ],
)
def test_patterns_are_one_word(word: str, names: list[int | str]) -> None:
    assert names_in(word) == names
    assert names_in("/".join(map(written, names))) == names


@pytest.mark.parametrize(
    "word", ["a//b", "/a", "a/", "4294967296", "#", "a/#", "+/a", "a/*/b", "**", "/".join("a" * 256)]
)
def test_words_that_are_no_pattern(word: str) -> None:
    with pytest.raises(BusError):
        pattern_of(word)


@pytest.mark.parametrize("name", ["fridge", "7", "0x1f", 7, "a b", "#", "buscoupler/loop", 'a"b'])
def test_a_written_name_reads_back(name: int | str) -> None:
    assert name_of(written(name)) == name
    assert names_in(written(name)) == [name]


@pytest.mark.parametrize("name", ["\x1b[2J", 'a"/b', ""])
def test_a_name_that_cannot_be_written_is_its_token(name: str) -> None:
    assert names_in(written(name)) == [token(name)]


@pytest.mark.parametrize(
    ("part", "name"),
    [("10", 10), ("0x10", 16), ("0X10", 16), ('""', ""), ('"', '"'), ('"a"', "a"), ("0" * 63 + "7", 7)],
)
def test_a_part_is_a_number_a_quoted_name_or_a_name(part: str, name: int | str) -> None:
    assert name_of(part) == name


def test_a_number_has_at_most_64_characters() -> None:
    with pytest.raises(TokenError, match=f"^{'0' * 64}... is not a token: it is above 4294967295$"):
        name_of("0" * 64 + "7")


def test_a_pattern_is_written_as_one_word() -> None:
    assert text_of(["fridge", "7", 7]) == 'fridge/"7"/0x00000007'
    assert text_of([]) == "/"
