from bus.names import RESERVED, Names, lines_of, names_from
from bus.wire.pattern import Pattern, token

TWINS = ("axjgjz", "ziieqj")


def test_a_token_without_a_name_is_hex_of_eight_digits() -> None:
    assert Names(["fridge"]).show(Pattern("fridge", "temp", 7)) == "fridge/0x473f888b/0x00000007"
    assert Names([7]).show([7]) == "0x00000007"
    assert Names().show([]) == "/"
    assert repr(Pattern("fridge", 7)) == "Pattern('fridge', 0x00000007)"


def test_behind_the_pattern_of_a_name_that_ends_so_identifiers_are_shown_as_such() -> None:
    names = Names(["car", "car/0x", "truck"])
    assert names.show(Pattern("car", 0x123)) == "car/0x123"
    assert names.show(Pattern("car", 0x98FEF100, 0x123)) == "car/0x18fef100x/0x00000123"
    assert names.show(Pattern("car", "truck")) == "car/truck"
    assert names.show(Pattern("truck", 0x123)) == "truck/0x00000123"
    assert names.show(Pattern("car")) == "car"


def test_reserved_names_are_always_known() -> None:
    assert Names().show(Pattern("buscoupler", "event", "takeover")) == "buscoupler/event/takeover"
    assert Names().show(Pattern("demo", "buscoupler/loop")).endswith('/"buscoupler/loop"')
    assert {"link", "loop", "lease"} < {*RESERVED}


def test_names_that_share_a_token_are_all_shown() -> None:
    one, other = TWINS
    assert Names([other, one, "fridge"]).show(Pattern("fridge", one)) == f"fridge/{one}|{other}"
    assert Names(TWINS).get(token(one)) == f"{one} | {other}"
    assert Names([other, one, "fridge"]).collisions() == {token(one): [one, other]}
    assert Names(["fridge"]).collisions() == {}


def test_a_file_has_a_name_a_line() -> None:
    lines = ["# ours", "fridge/temp   # the cold one", "", "C#1", "a b ", "7", '"7"']
    assert names_from(lines) == ["fridge", "temp", "C#1", "a b", 7, "7"]


def test_names_written_as_lines_read_back() -> None:
    names = ["fridge", "7", "#", " x", "a/b", "a b", 'a"b']
    assert names_from(lines_of([*names, "", "two\nlines", "a #b"])) == names
