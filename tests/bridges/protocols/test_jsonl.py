"""Lines of JSON: whole or by members, numbers as written, everything bounded."""

from typing import Any

import pytest

from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.jsonl.reading import Unreadable, read
from tests.bridges.protocols.spoken_support import fed, message, told, translator

NAMES = ("json", "room", "temp", "lat", "a", "b", "c")


def heard(data: bytes, **settings: Any) -> tuple[list[tuple[str, bytes]], dict[str, int]]:
    made = translator(JsonLines(**settings))
    return told(fed(made, [data]), *NAMES), made.wire.stats.rejected


def test_a_line_is_a_frame_as_it_was_written() -> None:
    lines = [b'{"a": 1.50, "b":[1,2]}', b"[1]", b'"text"', b"7"]
    assert heard(b"\r\n".join((*lines, b"", b" "))) == ([("json", line) for line in lines], {})


def test_the_mark_of_an_editor_before_a_line_is_no_part_of_it() -> None:
    assert heard(b'\xef\xbb\xbf{"a": 1}\r\n\xef\xbb\xbf\n[1]\n') == (
        [("json", b'{"a": 1}'), ("json", b"[1]")],
        {},
    )


def test_members_go_to_their_patterns_with_numbers_as_they_were_written() -> None:
    members = {"temp": ("room", "temp"), "gps.lat": ("lat",), "x.y": ("a",)}
    line = b'{"temp": 21.50, "gps": {"lat": -0.0e5}, "x.y": {"n": [1, "\xc2\xb0"]}, "more": 1}\n'
    assert heard(line, members=members) == (
        [("room/temp", b"21.50"), ("lat", b"-0.0e5"), ("a", b'{"n":[1,"\xc2\xb0"]}')],
        {},
    )


def test_lists_beside_each_other_are_no_deeper_than_one() -> None:
    data = b"[" + b",".join([b"[]"] * 40) + b"]"
    assert heard(b'{"a":' + data + b"}\n", members={"a": ("a",)}) == ([("a", data)], {})


def test_each_member_under_its_name() -> None:
    found, rejected = heard(
        b'{"a": "x\\ny", "b": true, "c": null, "7": 123456789012345678901234567890, "": 1}\n', split=True
    )
    assert found == [
        ("json/a", b"x\ny"),
        ("json/b", b"true"),
        ("json/0x00000007", b"123456789012345678901234567890"),
    ]
    assert rejected == {"null": 1, "unmatched": 1}
    assert heard(b'{"": 1}\n', split=True) == ([], {"unmatched": 1})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "no json"),
        (b"hello", "no json"),
        (b'{"a":1}x', "no json"),
        (b'{"a":NaN}', "not finite"),
        (b'{"a":-Infinity}', "not finite"),
        (b'{"a":1,"a":1}', "member twice"),
        (b'{"a":{"b":1,"b":2}}', "member twice"),
        (b'{"a":"\xff"}', "encoding"),
        (b"[" * 17 + b"]" * 17, "depth"),
        (b"[" * 2000, "depth"),
        (b'{"a":' * 300, "depth"),
        (b'{"z":1}', "unmatched"),
        (b"[1]", "no object"),
        (b"7", "no object"),
        (b'{"a":"\\ud800"}', "encoding"),
        (b'{"a":"' + b"x" * 2050 + b'"}', "oversize"),
        (b'{"a":null}', "null"),
    ],
)
def test_what_is_not_taken_is_counted_by_reason(line: bytes, reason: str) -> None:
    made = translator(JsonLines(members={"a": ("a",)}, longest_bytes=2048 if reason != "oversize" else 4096))
    assert told(fed(made, [line + b'\n{"a":2}\n']), *NAMES) == [("a", b"2")]
    assert made.wire.stats.rejected == {reason: 1}


def test_a_long_number_and_many_quotes_cost_no_more_than_they_are_long() -> None:
    found, _ = heard(b'{"a":' + b"9" * 2000 + b"}\n", members={"a": ("a",)})
    assert found == [("a", b"9" * 2000)]
    with pytest.raises(Unreadable, match=r"depth|no json"):
        read(b'"' + b'\\"' * 30_000 + b"[" * 100, 16)


def test_a_line_may_be_longer_than_a_frame_if_its_members_are_not() -> None:
    line = b'{"a":1,"pad":"' + b"x" * 60_000 + b'"}\n'
    assert heard(line, members={"a": ("a",)}, longest_bytes=65_536)[0] == [("a", b"1")]
    assert heard(line, longest_bytes=65_536) == ([], {"oversize": 1})


def test_frames_leave_whole_or_as_a_member() -> None:
    whole = translator(JsonLines(send=("out",)))
    assert list(whole.send(message("out/x", b' {"a": 1.0} '), 0).items) == [b'{"a":1.0}\n']
    by_member = translator(JsonLines(send={"room/set": "set.point", "room": "any"}))
    sent = [
        by_member.send(message(pattern, data), 0)
        for pattern, data in (
            ("room/set", b"21.50"),
            ("room/set", b"on"),
            ("room", b'{"x":[1]}'),
            ("room/y", b"NaN"),
            ("room", b'a"b\n'),
        )
    ]
    assert [b"".join(one.items) for one in sent] == [
        b'{"set":{"point":21.50}}\n',
        b'{"set":{"point":"on"}}\n',
        b'{"any":{"x":[1]}}\n',
        b'{"any":"NaN"}\n',
        b'{"any":"a\\"b\\n"}\n',
    ]


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 50 + b"]" * 50, b"", b"NaN"])
def test_what_is_no_json_does_not_leave(data: bytes) -> None:
    made = translator(JsonLines(send=("out",), longest_bytes=100))
    assert made.send(message("out", data), 0).why == "no text"
    assert made.send(message("out", b'"' + b"x" * 99 + b'"'), 0).why == "oversize"
    assert made.send(message("other", b"1"), 0).why == "not sent here"


@pytest.mark.parametrize(
    "settings",
    [
        {"members": {}},
        {"members": {"a..b": ("a",)}},
        {"members": {"a": ("a",)}, "split": True},
        {"depth": 0},
    ],
)
def test_what_can_never_work_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"member|depth"):
        JsonLines(**settings)
