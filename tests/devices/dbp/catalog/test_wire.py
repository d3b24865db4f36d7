"""Messages byte for byte as the page and the original have them, and what is no command."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.catalog import wire
from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import FAULTS
from devices.dbp.catalog.outcomes import REFUSED as LATER
from devices.dbp.catalog.wire import Command, Received, Refused, pack, pack_datagram, parse, parse_datagram
from tests.devices.dbp.catalog import original
from tests.devices.dbp.catalog.strategies import any_frame, objects
from tests.helpers import ROOT

PAGE = (ROOT / "docs/wire/dbp.md").read_text()
BLOCK = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEX = re.compile(r"^((?:(?:[0-9a-f]{2})+ )+) ", re.MULTILINE)
EXAMPLES = [[bytes.fromhex(line) for line in HEX.findall(block)] for block in BLOCK.findall(PAGE)]
ROW = re.compile(r"^\| `([^`]+)` \| ((?:[0-9a-f]{2} ?)+) \|", re.MULTILINE)
WALL_S = 1795387285.25
ROHAN = (b"Rohan",)


def frames(lines: list[bytes]) -> list[bytes]:
    """The frames of an example on TCP."""
    for number, line in enumerate(lines, 1):
        assert line[:2] == bytes([number < len(lines), len(line) - 2])
    return [line[2:] for line in lines]


def read(*parts: bytes, **bounds: Any) -> Received | Refused:
    return parse(parts, Bounds(**bounds))


def heard(*parts: bytes, **bounds: Any) -> Received:
    found = read(*parts, **bounds)
    assert isinstance(found, Received), found
    return found


def test_the_page_s_examples() -> None:
    request, reply, beat, acknowledged = map(frames, EXAMPLES[:4])
    assert request == original.ONE == pack(Command(b"u_U", ROHAN), True, 1795387264.0)
    assert heard(*request) == Received(wire.INFO_REQUEST, True, ("Rohan",))
    warning = pack_object({"Error": "inactive: Rohan"})
    assert reply == pack(Command(b"o_O", (warning,)), True, 1795387264.0)
    assert heard(*reply).fields == {"Error": "inactive: Rohan"}
    assert beat == pack(Command(wire.HEARTBEAT, ROHAN), False, WALL_S)
    assert heard(*beat) == Received(wire.HEARTBEAT, False, ("Rohan",))
    assert acknowledged == pack(Command(wire.ACKNOWLEDGED), False, WALL_S)
    ((datagram,),) = EXAMPLES[4:5]
    assert datagram == pack_datagram(wire.HEARTBEAT, "Rohan", WALL_S)


def test_the_page_has_the_bytes_of_every_command() -> None:
    rows = {word.encode(): bytes.fromhex(row) for word, row in ROW.findall(PAGE)}
    assert rows == {word: word for word in rows}
    assert rows.keys() == {
        wire.INFO_REQUEST, wire.INFO_REPLY, wire.REGISTRATION, wire.UPDATE, wire.APPROVED, wire.DENIED,
        wire.ACKNOWLEDGED, wire.HEARTBEAT, wire.DISCONNECT, wire.PING, wire.PONG, wire.MONITOR,
    }  # fmt: skip


def test_the_page_has_every_reason() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| [^|]*\|$", PAGE, re.MULTILINE)) >= wire.REFUSED.keys()
    assert set(re.findall(r"\| `(\w+)` \|$", PAGE, re.MULTILINE)) | {"size"} == FAULTS.keys()
    assert [reason for reason in LATER if f"`{reason}`" not in PAGE] == []


def test_what_the_original_sends_is_read() -> None:
    registration = heard(*original.REGISTRATION)
    assert registration.word == wire.REGISTRATION
    assert registration.fields["interfaces"] == {"router": {"ip": "127.0.0.1", "port": 5247}}
    assert heard(*original.UPDATE).fields == {"name": "Rohan", "topics": ["x"]}
    assert heard(*original.ALL) == Received(wire.INFO_REQUEST, True)
    assert heard(*original.PONG) == Received(wire.PONG, True, ("Rohan",))
    assert read(*original.NO_HANDLER) == Refused("command")


def test_what_the_original_takes_is_sent() -> None:
    at_s = original.RECORDED_AT_S
    assert pack(Command(wire.APPROVED), True, at_s) == original.APPROVED
    assert pack(Command(wire.ACKNOWLEDGED), True, at_s) == original.ACKNOWLEDGED


names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
bodies: Any = st.one_of(
    st.tuples(st.sampled_from([wire.INFO_REQUEST, wire.DENIED]), st.lists(names, min_size=1, max_size=5)),
    st.tuples(
        st.sampled_from([wire.HEARTBEAT, wire.PONG, wire.DISCONNECT]), st.lists(names, min_size=1, max_size=1)
    ),
    st.tuples(st.sampled_from([wire.INFO_REPLY, wire.REGISTRATION, wire.UPDATE, wire.APPROVED]), objects),
    st.tuples(st.sampled_from([wire.PING, wire.DISCONNECT, wire.APPROVED, wire.ACKNOWLEDGED]), st.just([])),
)


@given(bodies, st.booleans(), st.floats(0, 1e10))
def test_a_message_of_every_command_passes_unchanged(said: Any, binary_time: bool, wall_s: float) -> None:
    word, content = said
    body = (pack_object(content),) if isinstance(content, dict) else tuple(text.encode() for text in content)
    parts = pack(Command(word, body), binary_time, wall_s)
    assert len(parts) >= 4
    found = heard(*parts, message_bytes=1 << 20)
    assert found[:2] == (word, binary_time)
    assert (found.fields == content) if isinstance(content, dict) else (found.texts == tuple(content))


@given(objects, st.data())
def test_an_object_may_be_cut_between_frames(fields: dict[str, Any], data: st.DataObject) -> None:
    raw = pack_object(fields)
    places = data.draw(st.lists(st.integers(0, len(raw)), max_size=6).map(sorted))
    pieces = [raw[begin:end] for begin, end in pairwise([0, *places, len(raw)])]
    assert heard(b"", b"UwU", b"1", *pieces, message_bytes=1 << 20).fields == fields


def test_frames_may_have_an_object_each() -> None:
    assert heard(b"", b"UwU", b"1", b'{"a": 1, "b": 1}', b'{"a": 2}').fields == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("time", "binary"),
    [(b"\0\0\0\0", True), (b"1234", True), (b"\xff\xff\x7f\x7f", True), (b"0", False),
     (b"1795387285.25", False), (b"999999999999.999999999", False), (b"12345", False), (b"1.5", False)],
)  # fmt: skip
def test_four_bytes_of_time_are_a_float_and_others_are_text(time: bytes, binary: bool) -> None:
    assert heard(b"", b"ping", time).binary_time is binary


@pytest.mark.parametrize(
    "time",
    [b"", b" ", b"\0\0\x80\x7f", b"\0\0\x80\xff", b"\0\0\xc0\x7f", b"\0" * 8, b"-1", b"1e5", b"1.", b".5",
     b"nan", b"1_0", b"12345 ", b"1234567890123", b"1.1234567890", "\u0661\u0662\u0663".encode(), b"12345\n"],
)  # fmt: skip
def test_other_times_are_refused(time: bytes) -> None:
    assert read(b"", b"ping", time) == Refused("time")


T = b"1"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "frames"),
        ([b""], "frames"),
        ([b"", b"ping"], "frames"),
        ([b"", b"u_U", T], "frames"),
        ([b"", b"UwU", T], "frames"),
        ([b"", b"<3", T], "frames"),
        ([b"", b"OmO", T], "frames"),
        ([b"u_U", T, b"x"], "delimiter"),
        ([b"\0", b"u_U", T, b""], "delimiter"),
        ([b"", b"", T, b""], "command"),
        ([b"", b"uwu", T, b"{}"], "command"),
        ([b"", b"UwU ", T, b"{}"], "command"),
        ([b"", b"(O_O)", T, b"x"], "command"),
        ([b"", b"^o^", T, b""], "command"),
        ([b"", b"<\\3", T, b""], "exit"),
        ([b"", b"u_U", T, b"\xff"], "text"),
        ([b"", b"u_U", T, b"a\nb"], "text"),
        ([b"", b"u_U", T, b"good", b"x" * 201], "text"),
        ([b"", b"<3", T, b""], "text"),
        ([b"", b"<3", T, b"a", b"b"], "text"),
        ([b"", b"UwU", T, b""], "json"),
        ([b"", b"UwU", T, b"[]"], "json"),
        ([b"", b"UoU", T, b'{"a": '], "json"),
        ([b"", b"OwO", T, b"x"], "json"),
        ([b"", b"UwU", T, b'{"a":' * 17 + b"1" + b"}" * 17], "json"),
        ([b"", b"UwU", T, b'{"a": [' + b"1," * 1024 + b"1]}"], "json"),
        ([b""] * 65, "size"),
        ([b"", b"UwU", T, b" " * (1 << 14)], "size"),
    ],
)
def test_what_is_no_command_is_refused(parts: list[bytes], reason: str) -> None:
    assert parse(parts, Bounds()) == Refused(reason)
    assert reason in wire.REFUSED


def test_the_longest_message_is_read() -> None:
    assert heard(b"", b"u_U", T, *[b"n"] * 61).texts == ("n",) * 61
    room = Bounds().message_bytes - len(b'UwU1{"a": ""}')
    assert heard(b"", b"UwU", T, b'{"a": "%s"}' % (b"x" * room)).fields == {"a": "x" * room}
    assert read(b"", b"UwU", T, b'{"a": "%s"}' % (b"x" * (room + 1))) == Refused("size")
    assert heard(b"", b"u_U", T, b"x" * 200).texts == ("x" * 200,)


@given(st.lists(any_frame, max_size=8))
def test_no_frames_raise(parts: list[bytes]) -> None:
    found = parse(parts, Bounds(frames=6, message_bytes=40))
    if isinstance(found, Refused):
        assert found.reason in wire.REFUSED
    else:
        assert len(parts) <= 6


@given(st.data(), st.sampled_from([original.REGISTRATION, original.UPDATE, original.ONE, original.PONG]))
def test_no_damaged_message_raises(data: st.DataObject, parts: list[bytes]) -> None:
    at = data.draw(st.integers(0, len(parts) - 1))
    place = data.draw(st.integers(0, len(parts[at])))
    damaged = (
        parts[at][:place]
        + data.draw(st.binary(max_size=3))
        + parts[at][place + data.draw(st.integers(0, 3)) :]
    )
    found = parse([*parts[:at], damaged, *parts[at + 1 :]], Bounds())
    assert isinstance(found, Received) or found.reason in wire.REFUSED


@given(names, st.sampled_from([wire.HEARTBEAT, wire.DISCONNECT]))
def test_a_datagram_is_a_beat(name: str, word: bytes) -> None:
    data = pack_datagram(word, name, WALL_S)
    assert data == word + b" 1795387285.250000 " + name.encode()
    assert parse_datagram(data, Bounds()) == Received(word, False, (name,))
    assert parse_datagram(pack_datagram(word, f" {name}  {name}", 1), Bounds()) == Received(
        word, False, (f" {name}  {name}",)
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "frames"),
        (b"<3", "frames"),
        (b"<3 1", "frames"),
        (b"<3 1 ", "text"),
        (b"</3 1", "text"),
        (b"</3 1 ", "text"),
        (b"<3 1 a\0", "text"),
        (b"<3 " + original.TIME + b" a", "time"),
        (b"<3 x a", "time"),
        (b"SHALOM 5246 a", "command"),
        (b"ping 1 a", "command"),
        (b"u_U 1 a", "command"),
        (b"<3 1 " + b"a" * 20000, "size"),
    ],
)
def test_a_datagram_that_is_no_beat(data: bytes, reason: str) -> None:
    assert parse_datagram(data, Bounds()) == Refused(reason)


@given(st.binary(max_size=40), st.sampled_from([b"", b"<3 ", b"<3 1 ", b"</3 1 "]))
def test_no_datagram_raises(noise: bytes, start: bytes) -> None:
    found = parse_datagram(start + noise, Bounds())
    assert isinstance(found, Refused) or found.word in (wire.HEARTBEAT, wire.DISCONNECT)
