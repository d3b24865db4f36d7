import pytest

from bus.errors import BusError
from bus.names import RESERVED, Names, name_of, names_from, names_in, pattern_of, written
from bus.wire.pattern import Pattern, token

TWINS = ("axjgjz", "ziieqj")


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
    ],
)
def test_patterns_are_one_word(word: str, names: list[int | str]) -> None:
    assert names_in(word) == names
    shown = Names(names).show(pattern_of(word))
    assert pattern_of(shown) == pattern_of(word)


@pytest.mark.parametrize("word", ["a//b", "/a", "a/", "4294967296", "/".join("a" * 256)])
def test_words_that_are_no_pattern(word: str) -> None:
    with pytest.raises(BusError):
        pattern_of(word)


@pytest.mark.parametrize("name", ["fridge", "7", "0x1f", 7, "a b", "buscoupler/loop", 'a"b'])
def test_a_written_name_reads_back(name: int | str) -> None:
    assert name_of(written(name)) == name
    assert names_in(written(name)) == [name]


@pytest.mark.parametrize("name", ["\x1b[2J", 'a"/b', ""])
def test_a_name_that_cannot_be_written_is_its_token(name: str) -> None:
    assert names_in(written(name)) == [token(name)]


def test_a_token_without_a_name_is_hex_of_eight_digits() -> None:
    assert Names(["fridge"]).show(Pattern("fridge", "temp", 7)) == "fridge/0x473f888b/0x00000007"
    assert Names([7]).show([7]) == "0x00000007"
    assert Names().show([]) == "/"
    assert repr(Pattern("fridge", 7)) == "Pattern(0x5be18fe4, 0x00000007)"


def test_reserved_names_are_always_known() -> None:
    assert Names().show(Pattern("buscoupler", "event", "takeover")) == "buscoupler/event/takeover"
    assert Names().show(Pattern("demo", "buscoupler/loop")).endswith('/"buscoupler/loop"')
    assert {"link", "loop", "lease", "shed"} < {*RESERVED}


def test_names_that_share_a_token_are_all_shown() -> None:
    one, other = TWINS
    assert Names([other, one, "fridge"]).show(Pattern("fridge", one)) == f"fridge/{one}|{other}"
    assert Names(TWINS).get(token(one)) == f"{one} | {other}"


def test_a_file_has_a_name_a_line() -> None:
    lines = ["# ours", "fridge   # the cold one", "", "C#1", "a b ", "7", '"7"']
    assert names_from(lines) == ["fridge", "C#1", "a b", 7, "7"]
