"""Entries of a DBC: where each ends, and what is wrong with one."""

import pytest

from bridges.protocols.dbc.entries import entries


def told(text: str) -> list[tuple[str, int, str]]:
    """Return the entries of a text: keyword, line, and what is wrong or mended."""
    return [(one.kind, one.line, one.why or one.note) for one in entries(text)]


BEHIND = "\nBO_ 5 X: 8 V\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('CM_ "a";', ""),
        ('CM_ "a"', "it ends without a semicolon"),
        ('CM_ SG_ 5 "a";', "column 5: expected a text, or what it is about"),
        ('CM_ 5 "two\nlines";', "column 5: expected a text, or what it is about"),
        ('CM_ "one quote;', "column 5: expected a text in quotes"),
        ('CM_ SG_ 5 A "C:\\";', "column 13: expected a text in quotes"),
        ('CM_ BO_ 5 "the "best" one";', "column 17: expected a semicolon"),
        ('VAL_ 5 A 0 "Off" 1 On;', "column 18: expected a semicolon"),
        ('VAL_ 5 A 0 "Off" 1 "On"', "it ends without a semicolon"),
        ('VERSION 1.0', "column 9: expected a text in quotes"),
        ("BU_ A B", "column 5: expected a colon"),
        ("SIG_GROUP_ 5 G 1 : A B;", ""),
        ("SIG_GROUP_ 5 G 1 : A B", "it ends without a semicolon"),
        ('BA_ "A" SG_ 5 Speed1;', "column 21: expected a value"),
        ('BA_ "A" BU_ Node1;', "column 18: expected a value"),
        ("VAL_ 5;", "column 6: expected a name"),
        ("FOO_ 5;", "no entry of DBC has this name"),
        ("BS_: 500000 : 1,2", ""),
        ("NS_ :\n\tCM_\n\tBA_DEF_\n\n", ""),
    ],
)  # fmt: skip
def test_an_entry_ends_before_the_next_whatever_is_wrong_with_it(text: str, why: str) -> None:
    (kind, line, found), *behind = told(text + BEHIND)
    assert (kind, line) == (text.partition(" ")[0].rstrip(":"), 1)
    assert found == why
    assert behind == [("BO_", 2 + text.count("\n"), "")]


def test_a_text_in_quotes_may_have_lines_that_look_like_entries() -> None:
    text = 'CM_ SG_ 5 A "was:\nBO_ 7 Y: 8 V\n SG_ B : 0|8@1+ (1,0) [0|0] "" V\n";' + BEHIND
    assert told(text.replace('""', "")) == [("CM_", 1, ""), ("BO_", 5, "")]
    broken = text.replace('""', "").replace("CM_ SG_ 5 A", "CM_ 5")
    assert [(kind, line) for kind, line, _ in told(broken)] == [("CM_", 1), ("BO_", 5)]


def test_what_belongs_to_no_entry_is_one_of_its_own() -> None:
    text = f'/* BO_ 6 Old: 8 V\nBO_ 7 Old: 8 V */{BEHIND}what\nis this\n SG_ A : 0|8@1+ (1,0) [0|0] "" V;\n'
    assert told(text) == [
        ("/", 1, "it is no remark of DBC"),
        ("BO_", 3, ""),
        ("", 4, "it belongs to no entry"),
        ("SG_", 6, ""),
        (";", 6, "it belongs to no entry"),
    ]


def test_remarks_and_the_mark_of_an_end_of_file_are_nothing() -> None:
    assert told(f"// BO_ 7 Old: 8 V{BEHIND}// the end\n\x1a") == [("BO_", 2, "")]


def test_two_entries_may_be_on_one_line() -> None:
    text = 'BO_ 5 X: 8 V SG_ A : 0|8@1+ (1,0) [0|0] "" V,W CM_ "a";'
    assert [one.kind for one in entries(text)] == ["BO_", "SG_", "CM_"]
