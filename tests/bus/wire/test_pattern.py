import pytest

from bus.errors import TokenError
from bus.wire.pattern import Pattern, check_tokens, collisions, token


def test_hash_is_the_reference_one() -> None:
    assert token("") == 0
    assert token("a") == 97
    h = 0
    for character in "fridge":
        h = (65599 * h + ord(character)) % 2**32
    assert token("fridge") == h ^ (h >> 16)


def test_a_pattern_is_written_with_the_names_that_made_it() -> None:
    assert repr(Pattern("fridge", 7)) == "Pattern('fridge', 0x00000007)"


def test_prefix_matching() -> None:
    assert Pattern("fridge", 7) == (token("fridge"), 7)
    assert Pattern("fridge").matches(Pattern("fridge", "temp"))
    assert not Pattern("fridge", "temp").matches(Pattern("fridge"))
    assert Pattern().matches(())
    assert Pattern().matches((1, 2))


@pytest.mark.parametrize("bad", [-1, 1 << 32, True, 1.5, b"x", None])
def test_what_is_no_token_is_refused(bad: object) -> None:
    with pytest.raises(TokenError):
        Pattern(bad)  # type: ignore[arg-type]


def test_a_pattern_has_at_most_255_tokens() -> None:
    assert Pattern(*range(255)) == tuple(range(255))
    with pytest.raises(TokenError, match="256"):
        Pattern(*range(256))


def test_collisions_name_both() -> None:
    name = "fridge"
    check_tokens([name, "temp", name])
    assert collisions([name, token(name)]) == {token(name): [name, token(name)]}
    with pytest.raises(TokenError, match="'fridge' and"):
        check_tokens([name, token(name)])
