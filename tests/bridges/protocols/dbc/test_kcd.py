"""KCD with faults: what is mended, what is left out, and what is told."""

import pytest

from bridges.protocols.dbc.database import Unreadable, load
from bridges.protocols.dbc.kcd import mended_kcd

BODY = """<NetworkDefinition xmlns="http://kayak.2codeornot2code.org/1.0"><Document/><Bus name="b">
 <Message id="0x100" length="8" name="X">
  <Signal name="A" offset="0" length="8"/>
  <Multiplex name="P" offset="8" length="8"><MuxGroup count="1"><Signal name="B" offset="16"/></MuxGroup></Multiplex>
 </Message>
 <Message id="0x101" length="8" name="Good"><Signal name="Fine" offset="0"/></Message>
</Bus></NetworkDefinition>
"""  # noqa: E501


def test_an_identifier_that_is_extended_and_not_marked_is_read_as_extended() -> None:
    found = load(BODY.replace("0x100", "0xFF9B41"), "kcd")
    assert (found.messages["X"].id, found.messages["X"].is_extended) == (0xFF9B41, True)
    words = "X: its id 0xff9b41 is extended, and not marked so: read as extended"
    assert found.flaws == ((words, "X", False),)


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("offset=", "offset=", "APB"),
        ('name="A" offset="0"', 'name="A" offset="-1"', "PB"),
        ('name="A" offset="0"', 'name="A" offset="14280"', "PB"),
        ('length="8"/>', 'length="0"/>', "PB"),
        ('length="8"/>', 'length="0x8"/>', "PB"),
        ('length="8"/>', 'length="8" endianess="middle"/>', "PB"),
        ('"P" offset="8"', '"P" offset="x"', "A"),
        ('count="1"', 'count=""', "AP"),
        ('offset="16"', "", "AP"),
    ],
)
def test_a_signal_without_a_place_is_left_out_and_its_message_not_sent(old: str, new: str, left: str) -> None:
    found = load(BODY.replace(old, new, 1), "kcd")
    assert {one.name for one in found.messages["X"].signals} == set(left)
    assert [(flaw.message, flaw.blocks) for flaw in found.flaws] == [("X", True)] * (old != new)
    assert found.messages["Good"].signals


@pytest.mark.parametrize(
    ("old", "new"),
    [('"0x100"', '"0x40000000"'), ('"0x100"', '"none"'), ('length="8" name="X"', 'length="-1" name="X"')],
)
def test_a_message_without_an_identifier_or_a_length_is_left_out(old: str, new: str) -> None:
    found = load(BODY.replace(old, new), "kcd")
    assert list(found.messages) == ["Good"]
    assert [flaw.text.partition(": its")[0] for flaw in found.flaws] == ["X"]


@pytest.mark.parametrize("wrong", ['<Message id="z" name="Y"/>', '<Signal name="Y" offset="z"/>'])
def test_reading_is_linear_in_what_is_wrong(wrong: str) -> None:
    end = "</Bus>" if "Message" in wrong else "</Message>"
    good, count = wrong.replace('"z"', '"1"'), 60_000
    _, flaws = mended_kcd(BODY.replace(end, good * count + wrong * count + end, 1))
    assert len(flaws) == count


@pytest.mark.parametrize("number", ["0x100", "none"])
def test_what_is_nested_too_deeply_is_not_read_or_refused_in_words(number: str) -> None:
    signal = '<Signal name="A" offset="0" length="8"/>'
    deep = '<MuxGroup count="1">' * 5_000 + signal + "</MuxGroup>" * 5_000
    try:
        words = " ".join(load(BODY.replace(signal, deep).replace("0x100", number), "kcd").messages)
    except Unreadable as error:
        words = str(error)
    assert words.endswith("Good") or words.startswith("no KCD: ")
