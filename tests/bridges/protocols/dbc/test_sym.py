"""SYM with faults: what is mended, what is left out, and what is told."""

from typing import Any

import cantools
import pytest

from bridges.protocols.dbc.database import Unreadable, load
from bridges.protocols.dbc.sym import TRIES, mended_sym

BODY = """FormatVersion=6.0 // Do not edit this line!
Title="plant"

{SIGNALS}
Sig=A unsigned 8

{SENDRECEIVE}

[X]
ID=100h
Len=8
Sig=A 0
Var=B unsigned 8,8
Var=C unsigned 16,8

[Good]
ID=101h
Len=8
Mux=Page 0,8 FEh
Var=Fine unsigned 8,8
"""


@pytest.mark.parametrize("name", ["Page", '"A page, 1,2 FFh"'])
def test_a_page_may_be_a_number_that_begins_with_a_letter(name: str) -> None:
    found = load(BODY.replace("Page", name), "sym")
    assert found.flaws == ()
    assert [one.ids for one in found.messages["Good"].signals] == [None, {0xFE}]


def test_the_search_for_pages_is_linear_in_a_line() -> None:
    for line in ("Mux=" + "1" * 200_000, "Mux=" + "1,1 " * 100_000, 'Mux="' + "1,1 " * 100_000):
        assert mended_sym(f"{line}\n{BODY}") == f"{line}\n{BODY.replace('FEh', '0FEh')}"


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("B unsigned 8,8", "B unsigned 8;8", "AC"),
        ("Sig=A 0", "Sig=A x", "BC"),
        ("Sig=A unsigned 8", "Sig=A unsigned 8 ?", "BC"),
    ],
)
def test_a_signal_that_is_not_understood_is_left_out_and_its_message_not_sent(
    old: str, new: str, left: str
) -> None:
    found = load(BODY.replace(old, new), "sym")
    assert [one.name for one in found.messages["X"].signals] == list(left)
    (flaw,) = found.flaws
    assert flaw.text.startswith(f"line {BODY[: BODY.index(old)].count(chr(10)) + 1}: ")
    assert (flaw.message, flaw.blocks) == ("X", True)
    assert len(found.messages["Good"].signals) == 2


def test_a_message_that_is_refused_is_left_out() -> None:
    found = load(BODY.replace("8,8\nVar=C", "8,0\nVar=C"), "sym")
    assert list(found.messages) == ["Good"]
    assert [flaw.text for flaw in found.flaws] == [
        "line 9: X: The signal B length 0 is not greater than 0 in message X: left out"
    ]


def test_a_refusal_of_a_message_that_is_not_found_in_the_text_is_told() -> None:
    text = BODY.replace("[X]", '["X Y"]').replace("8,8\nVar=C", "8,0\nVar=C")
    with pytest.raises(Unreadable, match="The signal B length 0 is not greater than 0 in message X Y"):
        load(text, "sym")


def test_another_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(Unreadable, match=r"^it is SYM 5\.0: save it as version 6\.0$") as caught:
        load(BODY.replace("6.0", "5.0"), "sym")
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_a_file_is_parsed_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, kept = list[str](), cantools.database.load_string

    def counted(text: str, *words: Any, **settings: Any) -> object:
        tried.append(text)
        return kept(text, *words, **settings)

    monkeypatch.setattr(cantools.database, "load_string", counted)
    lines = "".join(f"Var=V{number} unsigned ;\n" for number in range(3 * TRIES))
    with pytest.raises(Unreadable, match="Invalid syntax"):
        load(BODY.replace("Var=B", f"{lines}Var=B"), "sym")
    assert len(tried) == TRIES
