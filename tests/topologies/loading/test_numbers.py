"""Numbers are what they look like, at every key of the schema that takes one, or an error."""

import pytest

from tests.topologies.places import EVERY
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.loading.numbers import unclear

ODD = {
    "0115200": "write 115200", "010": "write 10", "08": "write 8", "12:30": "write the plain number",
    "1_000": "write 1000", "0o17": "write 15", "0b11": "write 3", "+5": "write 5", ".5": "write 0.5",
    "1e3": "write 1000", "-010": "write -10", "0X1F": "write 31", "!!int '010'": "write 10",
}  # fmt: skip


NUMBERS = [place for place in EVERY if place.options & {int, float}]


def said(text: str, value: str = "") -> str:
    try:
        loads(text, "t", {"N": value})
    except InvalidTopology as error:
        return str(error)
    return ""


def test_the_keys_with_numbers_are_found() -> None:
    known = " ".join(before for before, *_ in NUMBERS)
    for key in ("node", "baud", "bitrate", "targets", "port", "subject", "nodes", "tokens", "pattern", "bus"):
        assert f"{key}: " in known, key
    assert len(NUMBERS) > 60


@pytest.mark.parametrize(
    ("odd", "why"),
    [("12:30", "to the base 60"), ("010", "to the base 8"), ("1_000", "is not a plain number")],
)
def test_it_is_said_why_a_number_is_unclear(odd: str, why: str) -> None:
    assert why in unclear(odd)


@pytest.mark.parametrize("odd", ODD)
def test_no_key_takes_a_number_that_yaml_reads_in_its_own_way(odd: str) -> None:
    for before, behind, options, _ in NUMBERS:
        assert ODD[odd] in (text := said(before + odd + behind)), before
        assert ("put it in quotes" in text) is (str in options), before


def test_a_variable_holds_a_plain_number_also_in_quotes() -> None:
    for before, behind, options, _ in NUMBERS:
        given = "!!int '${N}'" if str in options else "'${N}'"
        assert "write 10" in said(before + given + behind, "010"), before


def test_plain_numbers_and_text_are_clear() -> None:
    plain = [
        "0",
        "7",
        "-7",
        "115200",
        "0x1f",
        "1.5",
        "1.",
        "2.5e+3",
        "e3",
        "1.2.3",
        "10.0.0.1",
        "a:1",
        "-",
        "",
    ]
    assert [text for text in plain if unclear(text)] == []


def test_names_of_digits_are_names_in_quotes() -> None:
    head = "name: t\ngateways: {'010': }\nbuses: {p: {on: '010', listen: 'tcp://127.0.0.1:5'}}\n"
    side = "bridges: {x: {on: '010', pattern: [fridge, '010'], join: [bus: p, uart: /dev/x]}}\n"
    assert loads(head + side).bridges["x"].pattern == ("fridge", "010")
    assert "put it in quotes" in said(head.replace("on: '010'", "on: 010"))
