"""The names of frames on a wire and inside: longest match, both ways, and never two names for one."""

import pytest

from bus.renaming import Renaming, Tokens
from bus.wire.pattern import Pattern


def path(word: str) -> Tokens:
    return Pattern(*filter(None, word.split("/")))


def entering(renaming: Renaming, word: str) -> Tokens | None:
    turn = renaming.entering(path(word))
    return None if turn is None else turn.of(path(word))


def leaving(renaming: Renaming, word: str) -> Tokens | None:
    turn = renaming.leaving(path(word))
    return None if turn is None else turn.of(path(word))


def renamed(**pairs: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    return tuple((tuple(old.split("_")), tuple(new.split("_"))) for old, new in pairs.items())


KINDS = [
    (Renaming(prefix=("hall-a",)), {"temp/7": "hall-a/temp/7", "": "hall-a"}, [], ["temp", ""]),
    (Renaming(strip=("plant", "x")), {"plant/x/temp": "temp", "plant/x": ""}, ["plant", "temp"], []),
    (Renaming(strip=("a",), prefix=("b",)), {"a/t": "b/t"}, ["b/t", "t"], ["a/t", "t"]),
    (Renaming(rename=renamed(fridge_temp="cold_t")),
     {"fridge/temp/1": "cold/t/1", "fridge/door": "fridge/door"}, ["cold/t", "cold/t/1"], ["fridge/temp"]),
    (Renaming(rename=renamed(a="b", b="a")), {"a/1": "b/1", "b": "a", "c": "c"}, [], []),
    (Renaming(rename=renamed(a="b", a_x="c")), {"a/1": "b/1", "a/x/1": "c/1"}, ["b/2", "c"], ["b/x/1", "a"]),
    (Renaming(strip=("s",), rename=renamed(a="b"), prefix=("p",)), {"s/a/1": "p/b/1", "s/c": "p/c"},
     ["a/1", "s/b"], ["b/1", "p/a"]),
]  # fmt: skip


@pytest.mark.parametrize(("renaming", "pairs", "out", "inside"), KINDS)
def test_names_lead_in_and_back(
    renaming: Renaming, pairs: dict[str, str], out: list[str], inside: list[str]
) -> None:
    for there, here in pairs.items():
        assert entering(renaming, there) == path(here)
        assert leaving(renaming, here) == path(there)
    assert [entering(renaming, word) for word in out] == [None] * len(out)
    assert [leaving(renaming, word) for word in inside] == [None] * len(inside)


def test_a_number_of_tokens_is_taken_off_whatever_they_are_and_nothing_leaves() -> None:
    made = Renaming(strip=2, prefix=("p",))
    assert entering(made, "a/b/c") == entering(made, "x/y/c") == path("p/c")
    assert entering(made, "a") is None
    assert leaving(made, "p/c") is None


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (renamed(a="c", b="c"), "c would be the name of two patterns, a and b"),
        (((("x",), ("c",)), ((120,), ("d",))), "is given two names, c and d"),
        ((((), ("c",)),), "/ is no name"),
        (((("c",), ()),), "/ is no name"),
        (((("a",) * 200, ("b",)),), "tokens"),
    ],
)
def test_names_that_cannot_be_told_apart_are_refused(
    pairs: tuple[tuple[tuple[str | int, ...], tuple[str | int, ...]], ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Renaming(strip=("s",) * 100, rename=pairs)


def test_a_pattern_of_the_wire_is_covered_by_patterns_inside() -> None:
    made = Renaming(rename=renamed(a="b", a_x="c"), prefix=("p",))
    assert made.inside(("a",)) == (("p", "b"), ("p", "c"))
    assert made.inside(("a", "x", "1")) == (("p", "c", "1"),)
    assert made.inside(()) == (("p",), ("p", "c"), ("p", "b"))
    assert made.outside(("p", "b", "1")) == (("a", "1"),)
    assert made.outside(("q",)) == ()
    assert Renaming(strip=("s",)).inside(("t",)) == ()
    assert Renaming(strip=1).inside(("t", "u")) == (("u",),)
    assert Renaming(strip=2).inside(("t",)) == ((),)


@pytest.mark.parametrize(("strip", "first"), [((), ()), (2, ()), (("s", "t"), ("s", "t"))])
def test_all_patterns_of_the_settings_are_told(strip: int | tuple[str, ...], first: tuple[str, ...]) -> None:
    made = Renaming(strip=strip, rename=renamed(a="b"), prefix=("p",))
    assert [*made.patterns()] == [first, ("p",), ("a",), ("b",)]
