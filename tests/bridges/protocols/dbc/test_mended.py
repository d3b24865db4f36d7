"""Databases of CAN messages with faults: what is mended, what is left out, and what is told."""

import random
from typing import Any

import cantools
import pytest

from bridges.protocols.dbc import mended as module
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.layout import Database
from bridges.protocols.dbc.mended import mended
from tests.bridges.protocols.dbc.dbc_support import CAR, TRUCK, random_database

HEAD = 'VERSION ""\n\nBU_: V W\n'
GOOD = 'BO_ 9 Good: 8 V\n SG_ Fine : 0|8@1+ (1,0) [0|0] "" W\n'
FORMAT = 'BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN";\n'


def found(body: str) -> Database:
    """Return what a database has, with a message behind the body that must be there whatever is in front."""
    database = load(HEAD + body + GOOD, "dbc")
    assert [signal.name for signal in database.messages["Good"].signals] == ["Fine"]
    return database


def texts(database: Database) -> list[str]:
    """Return what is told, without the entries."""
    return [flaw.text for flaw in database.flaws]


MESSAGE = "BO_ {} {}: 8 V\n"
SIGNAL = ' SG_ {} : {}|8@1+ (1,0) [0|0] "" W\n'
PLAIN = MESSAGE.format(5, "X") + SIGNAL.format("A", 0)


def test_nothing_is_told_of_a_database_that_is_whole() -> None:
    for text in (CAR, TRUCK, random_database(random.Random(3), 40)):
        assert mended(text).faults == []
        theirs: Any = cantools.database.load_string(text, "dbc")
        again: Any = cantools.database.load_string(mended(text).text, "dbc")
        assert [str(one) for one in again.messages] == [str(one) for one in theirs.messages]
        assert [[str(one.signal_tree), one.protocol, one.cycle_time] for one in again.messages] == [
            [str(one.signal_tree), one.protocol, one.cycle_time] for one in theirs.messages
        ]


def test_a_number_may_begin_with_a_point() -> None:
    signal = (
        found(MESSAGE.format(5, "X") + ' SG_ A : 0|8@1+ (.25,-.5) [-.5|63.25] "" W\n')
        .messages["X"]
        .signals[0]
    )
    assert (signal.scale, signal.offset, signal.low) == (0.25, -0.5, -0.5)


def test_an_identifier_that_is_extended_and_not_marked_is_read_as_extended() -> None:
    text = MESSAGE.format(0x1234567, "X") + SIGNAL.format("A", 0) + 'VAL_ 19088743 A 1 "On" ;\n'
    database = found(text + 'BA_DEF_ BO_ "GenMsgCycleTime" INT 0 9;\nBA_ "GenMsgCycleTime" BO_ 19088743 7;\n')
    message = database.messages["X"]
    assert (message.id, message.is_extended, message.cycle_ms) == (0x1234567, True, 7)
    assert message.signals[0].choices == {1: "On"}
    words = "its identifier is extended, and not marked so: read as extended"
    assert database.flaws == ((f"line 4: BO_ 19088743 X: 8 V: {words}", "X", False),)


@pytest.mark.parametrize(("size", "what"), [(65, "frame"), (1785, "frame"), (1786, "message")])
def test_a_message_with_too_many_bytes_is_left_out(size: int, what: str) -> None:
    database = found(f"BO_ 5 X: {size} V\n" + SIGNAL.format("A", 0))
    assert list(database.messages) == ["Good"]
    assert f"{size} bytes are more than a {what} has" in texts(database)[0]


@pytest.mark.parametrize("number", [0x40140639, 0xFFFFFFFF, 0x80000000 | 1 << 29, 1 << 40])
def test_an_identifier_with_bits_that_none_has_takes_its_message_along(number: int) -> None:
    database = found(MESSAGE.format(number, "X") + SIGNAL.format("A", 0) + f'VAL_ {number} A 1 "On" ;\n')
    assert list(database.messages) == ["Good"]
    assert len(database.flaws) == 1
    assert "bits that no identifier has: left out, with its signals" in database.flaws[0].text


def test_an_unmarked_identifier_that_another_message_has_is_not_mixed_with_it() -> None:
    texts = 'VAL_ 4096 A 1 "wrong" ;\nVAL_ 2147487744 A 1 "right" ;\n'
    pair = [
        MESSAGE.format(number, name) + SIGNAL.format("A", 0)
        for number, name in ((4096, "X"), (0x80001000, "Y"))
    ]
    for body in (pair[0] + pair[1], pair[1] + pair[0]):
        database = found(body + texts)
        assert database.messages["Y"].signals[0].choices == {1: "right"}
        assert "X" not in database.messages
        assert "another message has it" in database.flaws[0].text


def test_names_that_are_none_of_dbc_are_read_as_they_are() -> None:
    text = (
        'BO_ 5 2017_5: 8 1V\n SG_ 64_BIT M : 0|4@1+ (1,0) [0|0] "" W\n'
        ' SG_ FILTER m1 : 8|8@1- (1,0) [0|0] "" W\n'
        'SG_MUL_VAL_ 5 FILTER 64_BIT 1-2;\nVAL_ 5 64_BIT 1 "On" ;\nSIG_VALTYPE_ 5 FILTER : 0;\n'
    )
    database = found(text)
    message = database.messages["2017_5"]
    assert message.senders == ("1V",)
    assert {one.name: (one.selector, one.ids) for one in message.signals} == {
        "64_BIT": ("", None), "FILTER": ("64_BIT", {1, 2}),
    }  # fmt: skip
    assert message.signals[0].choices == {1: "On"}
    assert texts(database) == [
        "line 4: BO_ 5 2017_5: 8 1V: its name is none of DBC: read as it is; so lines 5, 6"
    ]


@pytest.mark.parametrize(
    "signal",
    [
        ' SG_ B 8|8@1+ (1,0) [0|0] "" W\n',
        ' SG_ B : 8|8@2+ (1,0) [0|0] "" W\n',
        ' SG_ B : 8|8@1+ (1,5,0) [0|0] "" W\n',
        ' SG_ B : 8|8@1+ (0x1,0) [0|0] "" W\n',
        ' SG_ B : 8|8@1+ (1,0) [0|0] "km W\n',
        ' SG_ B : 8|0@1+ (1,0) [0|0] "" W\n',
        ' SG_ B : 99999|8@1+ (1,0) [0|0] "" W\n',
        ' SG_ B : -1|8@1+ (1,0) [0|0] "" W\n',
        ' SG_ B x : 8|8@1+ (1,0) [0|0] "" W\n',
        ' SG_ B : 8|8@1+ (1e999999999,0) [0|0] "" W\n',
        f' SG_ B : 8|8@1+ ({"1" * 5000},0) [0|0] "" W\n',
    ],
)
def test_a_signal_that_is_not_understood_is_left_out_and_its_message_not_sent(signal: str) -> None:
    database = found(PLAIN + signal + SIGNAL.format("C", 16) + 'VAL_ 5 B 1 "On" ;\n')
    assert [one.name for one in database.messages["X"].signals] == ["A", "C"]
    (flaw,) = database.flaws
    assert flaw.text.startswith("line 6: SG_ B")
    assert flaw.text.endswith("left out")
    assert (flaw.message, flaw.blocks) == ("X", True)


@pytest.mark.parametrize(
    "head", ["BO_ 5 X Y: 8 V\n", "BO_ 0x5 X: 8 V\n", "BO_ 5 X: 8.5 V\n", "BO_ 5 X 8 V\n"]
)
def test_a_message_that_is_not_understood_takes_its_signals_along(head: str) -> None:
    database = found(PLAIN + head.replace("5 X", "6 Z") + SIGNAL.format("B", 8))
    assert [one.name for one in database.messages["X"].signals] == ["A"]
    assert set(database.messages) == {"X", "Good"}
    assert [flaw.text.partition(":")[0] for flaw in database.flaws] == ["line 6"]


@pytest.mark.parametrize("head", ["bo_ 6 Z: 8 V\n", "\ufeffBO_ 6 Z: 8 V\n", "BOO_ 6 Z: 8 V\n", " SGG_ Z\n"])
@pytest.mark.parametrize("front", ["", "VAL_ 5 A 0 On\n", " SG_ C : \n", 'CM_ "a"\n'])
def test_signals_behind_what_may_have_been_a_message_are_of_none(head: str, front: str) -> None:
    database = found(PLAIN + front + head + SIGNAL.format("B", 8))
    assert [one.name for one in database.messages["X"].signals] == ["A"]
    told = {flaw.text.partition(": left out")[0].partition(": ")[0]: flaw for flaw in database.flaws}
    where = 6 + front.count("\n")
    assert told[f"line {where}"].blocks
    assert told[f"line {where}"].message == "X"
    assert "not known of which message" in told[f"line {where + 1}"].text


def test_signals_behind_other_entries_are_of_the_message_before_them() -> None:
    database = found(PLAIN + 'CM_ "more of it"\n' + SIGNAL.format("B", 8))
    assert [one.name for one in database.messages["X"].signals] == ["A", "B"]
    assert "without a semicolon" in database.flaws[0].text


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ("SIG_VALTYPE_ 5 A : 7;", []),
        ("SIG_VALTYPE_ 5 A : float;", []),
        ("SIG_VALTYPE_ 5 A;", []),
        ("SIG_VALTYPE_ 5 A 1;", ["A"]),
        ("SIG_VALTYPE_ 5 A : 1", ["A"]),
    ],
)
def test_a_signal_of_unknown_type_is_left_out(entry: str, left: list[str]) -> None:
    wide = PLAIN.replace("0|8@", "0|32@")
    database = found(wide + entry + "\n")
    assert [one.name for one in database.messages["X"].signals] == left
    assert all(one.is_float for one in database.messages["X"].signals)
    assert [flaw.blocks for flaw in database.flaws] == [not left]


PAGES = (
    'BO_ 5 X: 8 V\n SG_ P M : 0|8@1+ (1,0) [0|0] "" W\n SG_ Q m1M : 8|8@1+ (1,0) [0|0] "" W\n'
    ' SG_ A m1 : 16|8@1+ (1,0) [0|0] "" W\n SG_ B m2 : 16|8@1+ (1,0) [0|0] "" W\n'
    "SG_MUL_VAL_ 5 Q P 1-1;\nSG_MUL_VAL_ 5 A Q 1-3;\nSG_MUL_VAL_ 5 B P 2-2, 4-6;\n"
)


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("B P 2-2, 4-6", "B P 2-2, 6-4", "PQA"),
        ("B P 2-2, 4-6", "B P 2-2, 4-99999999", "PQA"),
        ("B P 2-2, 4-6", "B P 2-x", "PQA"),
        ("B P 2-2, 4-6", "B A 2-2", "PQA"),
        ("B P 2-2, 4-6", "B Z 2-2", "PQA"),
        ("Q P 1-1", "Q A 1-1", "P"),
        ("5 Q P 1-1", "5 Q ?", "P"),
        ("P M : 0|8", "P M : 0/8", ""),
        ("Q m1M : 8|8", "Q m1M : 8|0", "P"),
        (" m2 : 16", " m2 : 16 |", "PQA"),
    ],
)
def test_what_is_in_doubt_of_pages_is_left_out(old: str, new: str, left: str) -> None:
    assert [one.name for one in found(PAGES).messages["X"].signals] == list("PQAB")
    database = found(PAGES.replace(old, new))
    assert [one.name for one in database.messages["X"].signals] == list(left)
    assert database.flaws
    assert all(flaw.blocks and flaw.message == "X" for flaw in database.flaws)


def test_the_only_signal_that_entries_say_chooses_pages_does_so_whatever_its_mark() -> None:
    pages = "".join(f"SG_MUL_VAL_ 5 P{page} S {page}-{page};\n" for page in (1, 2))
    signals = SIGNAL.format("S m", 8) + SIGNAL.format("P1 m1", 16) + SIGNAL.format("P2 m2", 16)
    database = found(PLAIN + signals + pages)
    one = {signal.name: signal for signal in database.messages["X"].signals}
    assert (one["S"].is_selector, one["P1"].selector, one["P2"].ids) == (True, "S", frozenset({2}))
    (flaw,) = database.flaws
    assert flaw.text.endswith(": another entry says that it chooses pages: read as a multiplexer")
    assert not flaw.blocks
    database = found(PLAIN + signals + SIGNAL.format("T M", 24) + pages)
    assert all(signal.name in "AT" for signal in database.messages["X"].signals)


def test_pages_that_no_signal_chooses_are_told() -> None:
    database = found(PLAIN.replace("A :", "A m3 :"))
    assert database.messages["X"].signals[0].ids is None
    assert ["read from every frame" in flaw.text and flaw.blocks for flaw in database.flaws] == [True]
    told = texts(found(PAGES.replace("SG_MUL_VAL_ 5 A Q 1-3;\n", "")))
    assert "SG_ A m1" in told[0]
    assert "read from every frame" in told[0]


def test_signals_that_choose_each_other_are_left_out() -> None:
    text = PAGES.replace("P M :", "P m0M :") + "SG_MUL_VAL_ 5 P Q 0-0;\n"
    assert found(text).messages["X"].signals == ()


def test_the_pages_of_a_whole_file_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ALL_IDS_MAX", 4)
    assert [one.name for one in found(PAGES).messages["X"].signals] == list("PQA")


@pytest.mark.parametrize(
    ("entries", "word", "blocks"),
    [
        (
            'BA_ "Color" BO_ 5 3;\nBA_ "Color" BO_ 9 3;\n',
            'no attribute "Color" is defined, and 1 more like it',
            False,
        ),
        ('BA_DEF_ BO_ "Color" BOOL Yes No;\nBA_ "Color" BO_ 5 3;\n', "expected a semicolon", False),
        (
            'BA_DEF_ BO_ "GenMsgCycleTime" INT 0 9;\nBA_ "GenMsgCycleTime" BO_ 5 "x";\n',
            "no value of this",
            False,
        ),
        (
            'BA_DEF_ BO_ "GenMsgCycleTime" STRING;\nBA_ "GenMsgCycleTime" BO_ 5 "x";\n',
            "another type than INT",
            False,
        ),
        (FORMAT + 'BA_ "VFrameFormat" BO_ 5 7;\n', "no value of this", True),
        (FORMAT + 'BA_ "VFrameFormat" BO_ 5 x;\n', "expected a value", True),
        (FORMAT + 'BA_DEF_DEF_ "VFrameFormat" "CAN";\n', "no value of this", False),
    ],
)
def test_attributes_with_faults_are_left_out(entries: str, word: str, blocks: bool) -> None:
    (flaw,) = found(PLAIN + entries).flaws
    assert word in flaw.text
    assert flaw.blocks is blocks
    assert flaw.message in ("X", "")
    assert flaw.message or not blocks


@pytest.mark.parametrize("value", ["3", '"J1939PG"'])
def test_a_format_of_frames_may_be_a_text(value: str) -> None:
    kinds = 'BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","reserved","J1939PG";\n'
    text = MESSAGE.format(0x80FECA00, "X") + SIGNAL.format("A", 0) + kinds
    database = found(f'{text}BA_ "VFrameFormat" BO_ {0x80FECA00} {value};\n')
    assert database.messages["X"].is_j1939
    assert database.flaws == ()


def test_a_flaw_names_the_message_by_its_long_name() -> None:
    long = 'BA_DEF_ BO_ "SystemMessageLongSymbol" STRING;\nBA_ "SystemMessageLongSymbol" BO_ 5 "Longer";\n'
    (flaw,) = found(PLAIN + " SG_ B\n" + long).flaws
    assert (flaw.message, flaw.blocks) == ("Longer", True)


def test_losses_are_told_before_what_was_mended() -> None:
    told = texts(found('CM_ "a"\nCM_ "b"\n' + PLAIN + " SG_ B\n"))
    assert [text.partition(":")[0] for text in told] == ["line 8", "line 4"]
    assert told[1].endswith("without a semicolon; so lines 5")


def test_reading_is_linear_in_what_is_wrong() -> None:
    """Quotes, escapes and gaps that never end are looked at once."""
    for unit in ('CM_ "', 'CM_ 5 \\"', 'EV_ "\\"', "FOO_ x ", "/* \nCM_ ", "VAL_ 5 A 1 ", "NS_ :\n\t"):
        text = HEAD + PLAIN + f"{unit}\n" * 5_000
        assert load(text, "dbc").messages["X"].signals[0].name == "A"


@pytest.mark.parametrize(
    "body",
    [
        PLAIN + "EV_ a;" * 40_000 + "\n",
        PLAIN + "CM_ (\n" * 40_000,
        PLAIN
        + 'BA_DEF_ BO_ "VFrameFormat" ENUM '
        + '"a",' * 40_000
        + '"b";\n'
        + 'BA_ "VFrameFormat" BO_ 5 "c";\n' * 40_000,
        PLAIN
        + SIGNAL.format("S M", 8)
        + SIGNAL.format("P m1", 16) * 20_000
        + "SG_MUL_VAL_ 5 P S 1-1;\n" * 20_000,
    ],
    ids=["one line", "no end", "many choices", "many of one name"],
)
def test_reading_is_linear_in_what_is_valid_and_strange(body: str) -> None:
    assert mended(HEAD + body).messages == 1
