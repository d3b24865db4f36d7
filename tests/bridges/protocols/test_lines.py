"""Lines of text: cut, bounded, matched, written."""

from typing import Any

import pytest

from bridges.protocols.lines.protocol import Lines
from tests.bridges.protocols.spoken_support import fed, message, told, translator

GPS = Lines(receive=("gps", "raw"), send=("display", "text"))
MATCH = r"(?P<kind>[A-Z]+|[0-9]+)=(?P<data>.*)$"


def test_a_line_is_a_frame_however_it_comes_in_pieces() -> None:
    made = translator(GPS)
    found = fed(made, [b"one\r\nt", b"wo\n", b"\n", b"thr", b"ee\n"])
    assert told(found, "gps", "raw") == [("gps/raw", b"one"), ("gps/raw", b"two"), ("gps/raw", b"three")]
    assert [made.take_counts() for _ in range(2)] == [(3, 0), (0, 0)]


@pytest.mark.parametrize(
    ("settings", "noun"),
    [
        ({}, "a line"),
        ({"match": MATCH}, "a line that matches"),
        ({"match": MATCH, "unmatched": ("x",)}, "a line"),
    ],
)
def test_what_is_waited_for_is_a_line_or_one_that_matches(settings: dict[str, Any], noun: str) -> None:
    assert Lines(**settings).noun == noun


def test_the_mark_of_an_editor_before_a_line_is_no_part_of_it() -> None:
    marked = [b"\xef\xbb\xbfone\n\xef\xbb\xbf\ntwo\n"]
    for encoding in ("utf-8", "ascii"):
        made = translator(Lines(encoding=encoding))
        assert fed(made, marked) == fed(translator(Lines()), [b"one\ntwo\n"]), encoding
    assert fed(translator(Lines(encoding="none")), marked[:1])[0].endswith(b"\xef\xbb\xbfone")


def test_a_line_without_end_is_bounded_and_counted_once() -> None:
    made = translator(GPS)
    assert fed(made, [b"x" * 3000, b"y" * 100, b"\nnext\n"]) == fed(translator(GPS), [b"next\n"])
    assert made.wire.stats.rejected == {"oversize": 1}
    assert made.take_counts() == (1, 3100)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_longest_line_fits_and_one_more_byte_does_not(end: bytes) -> None:
    made = translator(Lines(longest_bytes=10))
    assert len(fed(made, [b"x" * 10 + end + b"y" * 11 + end])) == 1
    assert made.wire.stats.rejected == {"oversize": 1}


@pytest.mark.parametrize("encoding", ["none", "ascii", "utf-8"])
def test_a_line_feed_behind_a_delimiter_that_is_cr_is_no_part_of_the_next_line(encoding: Any) -> None:
    """A scanner that is told by CR, and answers with CR LF, once gave all codes but the first with a LF."""
    sent = b"one\r\ntwo\r\n\r\nlast\rplain\r\n"
    record = Lines(delimiter="\r", encoding=encoding, longest_bytes=5)
    whole, cut = translator(record), translator(record)
    found = [data for _, data in told(fed(whole, [sent]))]
    assert found == [data for _, data in told(fed(cut, [bytes((one,)) for one in sent]))]
    assert found == [b"one", b"two", b"last", b"plain"]
    assert [*whole.end(0.0), *cut.end(0.0)] == []
    assert whole.wire.stats.rejected == cut.wire.stats.rejected == {}
    datagrams = translator(record, "datagrams")
    assert told(fed(datagrams, [b"one\r\n", b"two"])) == told(fed(translator(record), [b"one\rtwo\r"]))
    assert fed(translator(Lines(delimiter=";")), [b"a;\nb;"])[1].endswith(b"\nb")


@pytest.mark.parametrize("delimiter", [";", "\r", "\r\n", "\x00", "\xff\xfe", "END!"])
def test_any_delimiter_of_up_to_4_bytes(delimiter: str) -> None:
    end = delimiter.encode("latin-1")
    made = translator(Lines(delimiter=delimiter, send=("out",)))
    assert [data for _, data in told(fed(made, [b"a" + end[:1], end[1:] + b"b" + end]))] == [b"a", b"b"]
    assert list(made.send(message("out", b"hi"), 0).items) == [b"hi" + end]
    assert made.send(message("out", b"h" + end + b"i"), 0).why == "line end inside"


@pytest.mark.parametrize("delimiter", [None, ">", ";", "\r", "\r\n", "END!"])
@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_data_never_end_the_line_of_a_template(delimiter: str | None, end: str) -> None:
    """A prompt ends what an OBD dongle says, and CR what it is asked: data with a CR were two commands."""
    made = translator(
        Lines(delimiter=delimiter, send={"obd/ask": f"{{data}}{end}", "set": f"{{1}}={{data}}{end}"})
    )
    for line_end in (b"\r", b"\n", (delimiter or "\n").encode()):
        for pattern in ("obd/ask", "set/5"):
            assert made.send(message(pattern, b"010C" + line_end + b"ATZ"), 0).why == "line end inside"
    assert list(made.send(message("obd/ask", b"010C"), 0).items) == [b"010C" + end.encode()]


@pytest.mark.parametrize(
    ("encoding", "lines"),
    [("none", [b"a", b"\xc2\xb0", b"\xb0"]), ("utf-8", [b"a", b"\xc2\xb0"]), ("ascii", [b"a"])],
)
def test_the_encoding_is_checked_both_ways(encoding: Any, lines: list[bytes]) -> None:
    made = translator(Lines(encoding=encoding, send=("out",)))
    assert [data for _, data in told(fed(made, [b"a\n\xc2\xb0\n\xb0\n"]))] == lines
    assert made.wire.stats.rejected.get("encoding", 0) == 3 - len(lines)
    whys = [made.send(message("out", data), 0).why for data in (b"a", b"\xc2\xb0", b"\xb0")]
    assert whys.count("no text") == 3 - len(lines)


def test_named_groups_are_tokens_and_data() -> None:
    made = translator(Lines(match=MATCH, receive=("gps", "{kind}", "raw"), unmatched=("gps", "other")))
    found = fed(made, [b"TEMP=21.5\r\n7=\r\nlower=1\n\xff\xfe=x\n"])
    assert told(found, "gps", "TEMP", "raw", "other") == [
        ("gps/TEMP/raw", b"21.5"),
        ("gps/0x00000007/raw", b""),
        ("gps/other", b"lower=1"),
        ("gps/other", b"\xff\xfe=x"),
    ]
    assert not made.wire.stats.rejected


def test_a_minus_that_stands_apart_comes_before_the_data() -> None:
    weight = r"(?:[A-Z]\S*)? *(?P<sign>[-+]?) *(?P<data>[0-9.]+) *(?:g|kg)? *$"
    made = translator(Lines(match=weight, receive=("scale",)))
    lines = b"+  123.56 g  \r\nN     -    1.5 g  \r\nST   7 kg\r\n      -0.2 g\r\n"
    assert told(fed(made, [lines]), "scale") == [
        ("scale", b"123.56"),
        ("scale", b"-1.5"),
        ("scale", b"7"),
        ("scale", b"-0.2"),
    ]


def test_a_sign_inside_the_data_is_not_written_twice() -> None:
    """`-5` once came as `--5`, and the longest line as more than a frame has."""
    made = translator(Lines(match="(?P<data>(?P<sign>-?)[0-9]*)", longest_bytes=2048))
    longest = b"-" + b"5" * 2047
    found = told(fed(made, [b"-5\n7\n" + longest + b"\n"]))
    assert [data for _, data in found] == [b"-5", b"7", longest]
    behind = translator(Lines(match="(?P<data>[0-9.]+)(?P<sign>-?)"))
    assert [data for _, data in told(fed(behind, [b"1.5-\n2\n"]))] == [b"-1.5", b"2"]


def test_a_sign_that_has_a_place_in_the_pattern_is_a_name() -> None:
    made = translator(Lines(match="(?P<sign>[-+])(?P<data>.*)", receive=("lamp", "{sign}")))
    assert told(fed(made, [b"-x\n"]), "lamp", "-") == [("lamp/-", b"x")]


def test_what_does_not_match_is_counted() -> None:
    made = translator(Lines(match=MATCH))
    assert told(fed(made, [b"A=1\nfoo\n"]), "lines") == [("lines", b"1")]
    assert made.wire.stats.rejected == {"unmatched": 1}
    assert made.take_counts() == (1, 3)


def test_the_first_of_several_expressions_that_fits_counts() -> None:
    rules = {"T=(?P<data>[0-9.]+)": ("room", "temp"), "(?P<name>[A-Z])=": ("room", "{name}-x")}
    made = translator(Lines(match=rules))
    assert told(fed(made, [b"T=21.5\nQ=1\n"]), "room", "temp", "Q-x") == [
        ("room/temp", b"21.5"),
        ("room/Q-x", b"Q=1"),
    ]


def test_an_empty_group_is_no_token_and_a_hard_expression_takes_linear_time() -> None:
    made = translator(Lines(match="(?P<a>x*)(?P<b>(a*)*$)", receive=("r", "{a}")))
    assert fed(made, [b"aaa\n", b"x" + b"a" * 2000 + b"!\n"]) == []
    assert made.wire.stats.rejected == {"unmatched": 2}
    assert len(fed(made, [b"x" + b"a" * 2000 + b"\n"])) == 1


def test_bytes_that_are_no_text_match_as_characters_unless_an_encoding_is_asked_for() -> None:
    assert len(fed(translator(Lines(match="(?P<k>.)=", receive=("{k}",))), [b"\xb0=1\n"])) == 1
    made = translator(Lines(match="(?P<k>.)=", receive=("{k}",), encoding="utf-8"))
    assert told(fed(made, ["°=1\n".encode()]), "°") == [("°", "°=1".encode())]


def test_frames_are_written_by_templates_with_the_longest_pattern_first() -> None:
    templates = {"display": "ANY {data}\n", "display/text": 'TEXT {1} {"d": {data}}\r\n'}
    made = translator(Lines(send=templates), names=("on", "room"))
    sent = [
        made.send(message(pattern, b"hi"), 0)
        for pattern in ("display", "display/text/on", "display/text/7/8", "display/text", "other")
    ]
    assert [b"".join(one.items) for one in sent] == [
        b"ANY hi\n",
        b'TEXT on {"d": hi}\r\n',
        b'TEXT 7 {"d": hi}\r\n',
        b"",
        b"",
    ]
    assert [one.why for one in sent][3:] == ["no token", "not sent here"]


@pytest.mark.parametrize("data", [b"a\nb", b"a\rb", b"a\r\n", b"\n"])
def test_a_line_end_in_data_or_in_a_name_never_leaves(data: bytes) -> None:
    assert translator(GPS).send(message("display/text", data), 0).why == "line end inside"
    made = translator(Lines(send={"d": "{1} {data}\n"}), names=("x\ny",))
    assert made.send(message('d/"x\ny"', b"1"), 0).why == "line end inside"


def test_a_frame_is_written_as_a_line_if_it_is_not_too_long() -> None:
    assert list(translator(GPS).send(message("display/text", b"hi"), 0).items) == [b"hi\n"]
    made = translator(Lines(send=("d",), longest_bytes=4))
    assert [made.send(message("d", b"x" * size), 0).why for size in (4, 6)] == ["", "oversize"]


def test_what_is_left_at_the_end_is_counted() -> None:
    made = translator(GPS)
    fed(made, [b"half"])
    assert made.end(0) == []
    assert made.wire.stats.rejected == {"unfinished": 1}
    assert made.take_counts() == (0, 4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"receive": ("a", "{kind}")}, "nothing fills {kind}: there is no match"),
        ({"match": "(?P<a>x)", "receive": ("{b}",)}, "match has no such group"),
        ({"match": {"(?P<a>x)": ("{b}",)}}, "match has no such group"),
        ({"match": {"x": ("a",)}, "receive": ("b",)}, "leave receive out"),
        ({"unmatched": ("a",)}, "unmatched without match"),
        ({"match": "x", "unmatched": ("{a}",)}, "has no groups"),
        ({"match": "(?P<sign>-?) *[0-9]+"}, "sign comes before the group data"),
        ({"match": {"(?P<sign>-?) *[0-9]+": ("a",)}}, "sign comes before the group data"),
        ({"send": {"a": "{what}"}}, "{what} is no place"),
        ({"send": {"a": "\u20ac"}}, "more than a byte"),
        ({"delimiter": ""}, "a delimiter is 1 to 4 bytes"),
        ({"delimiter": "12345"}, "a delimiter is 1 to 4 bytes"),
        ({"delimiter": "\u20ac"}, "a delimiter is 1 to 4 bytes"),
        ({"delimiter": "\xff", "encoding": "utf-8"}, "not ASCII"),
        ({"longest_bytes": 2049}, "1 to 2048"),
    ],
)
def test_what_can_never_work_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("{", r"\{")):
        Lines(**settings)


def test_check_tells_a_wrong_expression_and_a_template_that_ends_no_line() -> None:
    (wrong,) = Lines(match="(((").problems()
    assert wrong.is_error
    assert "(((: RE2 does not take it: missing )" in wrong.text
    (half,) = Lines(send={"a/b": r"X {data}\r\n"}).problems()
    assert not half.is_error
    assert "the template of a/b ends no line" in half.text
    for written in (r"\r\n", r"\n", r"\x03", r"\0"):  # in single quotes, where they stand for themselves
        (half,) = Lines(delimiter=written, send=("a",)).problems()
        assert "in double quotes" in half.text
        assert not half.is_error
    for meant in ("\r\n", "\x03", "\\", "\\>", r"\\d"):
        assert list(Lines(delimiter=meant, send=("a",)).problems()) == []
    assert list(Lines(match="x", send={"a": "{data}\r\n"}).problems()) == []
    assert list(Lines(delimiter=">", send={"obd/ask": "{data}\r"}).problems()) == []  # an ELM327


def test_the_way_is_the_part_of_each_pattern_that_is_fixed() -> None:
    way = Lines(match="(?P<k>x)", receive=("a", "{k}", "c"), unmatched=("b",), send={"d/e": "{data}\n"}).way
    assert (way.inward, way.outward) == ((("a",), ("b",)), (("d", "e"),))
    assert Lines().way.outward == ()
