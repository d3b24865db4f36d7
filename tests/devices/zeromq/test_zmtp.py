"""ZMTP on the stream, byte by byte; whatever comes, wherever it is cut, within bounds."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.zeromq import zmtp
from devices.zeromq.limits import Limits
from devices.zeromq.zmtp import FITS, Cutter, Hello, Ping, Ready

START = zmtp.GREETING + zmtp.ready(zmtp.DEALER)


def cutter(message_bytes: int = 1000, frames: int = 8) -> Cutter:
    return Cutter(FITS[zmtp.ROUTER], message_bytes, frames)


def test_the_greeting_is_that_of_the_specification() -> None:
    said = bytes.fromhex("ff 00 00 00 00 00 00 00 00 7f 03 00 4e 55 4c 4c") + bytes(48)
    assert said == zmtp.GREETING


def test_ready_says_the_type_and_no_identity() -> None:
    assert zmtp.ready(zmtp.PUB) == bytes.fromhex(
        "04 26 05 52 45 41 44 59  0b 53 6f 63 6b 65 74 2d 54 79 70 65 00 00 00 03 50 55 42"
        "08 49 64 65 6e 74 69 74 79 00 00 00 00"
    )


def test_a_message_lies_on_the_stream_frame_by_frame() -> None:
    assert zmtp.pack([b"", b"<3"]) == bytes.fromhex("01 00 00 02 3c 33")
    long = zmtp.pack([b"x" * 256])
    assert long[:9] == bytes.fromhex("02 00 00 00 00 00 00 01 00")


@given(st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=4)), st.data())
def test_whatever_is_packed_is_cut_the_same_wherever_it_is_split(
    messages: list[list[bytes]], data: st.DataObject
) -> None:
    stream = START + b"".join(map(zmtp.pack, messages)) + zmtp.command(b"PING", b"\0\1abc")
    sizes = data.draw(st.lists(st.integers(1, 100), max_size=20))
    ends = [0, *accumulate(sizes), len(stream)]
    one = cutter(2000)
    said = [thing for start, end in pairwise(ends) for thing in one.cut(stream[start : max(start, end)])]
    assert said == [Hello(), Ready(b""), *messages, Ping(b"abc")]
    assert (one.fault, one.waiting) == ("", 0)


@given(st.binary(max_size=400), st.booleans())
def test_no_bytes_make_it_raise_or_keep_more_than_its_bound(data: bytes, greeted: bool) -> None:
    one = cutter(100, 3)
    if greeted:
        one.cut(START)
    for at in range(0, len(data), 7):
        for said in one.cut(data[at : at + 7]):
            if isinstance(said, list):
                assert len(said) <= 3
                assert sum(map(len, said)) <= 100
        if one.fault:
            break
    assert one.waiting <= zmtp.COMMAND_BYTES + 100


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\xfe", "no ZMTP"),
        (b"\xff" + bytes(9), "no ZMTP"),
        (zmtp.GREETING[:10] + b"\2", "ZMTP 2"),
        (zmtp.GREETING[:12] + b"PLAIN" + bytes(47), "another mechanism than NULL"),
        (zmtp.GREETING + zmtp.command(b"HELLO", b""), "no READY"),
        (zmtp.GREETING + b"\4\0", "no READY"),
        (zmtp.GREETING + zmtp.ready(b"PUB"), "a type of socket that does not fit"),
        (zmtp.GREETING + zmtp.command(b"READY", b"\xff"), "a type of socket that does not fit"),
        (zmtp.GREETING + b"\0\0", "a message before READY"),
        (START + b"\x08\0", "flags 0x08"),
        (START + b"\x05\0", "an illegal command"),
        (START + b"\1\0" + zmtp.command(b"PING", b""), "an illegal command"),
        (START + b"\x06" + (1025).to_bytes(8, "big"), "an illegal command"),
        (START + zmtp.command(b"ERROR", b"\4away"), "the peer refuses"),
        (START + b"\2" + (1 << 63).to_bytes(8, "big"), "a message of more than 1000 bytes"),
        (START + zmtp.pack([b"x" * 600, b"x" * 401]), "a message of more than 1000 bytes"),
        (START + zmtp.pack([b""] * 9), "a message of more than 8 frames"),
    ],
)
def test_a_fault_ends_it_after_what_was_right(data: bytes, fault: str) -> None:
    one = cutter()
    before = zmtp.pack([b"right"]) if data.startswith(START) else b""
    said = one.cut(data[: len(START)] + before + data[len(START) :] if before else data)
    assert one.fault == fault
    assert one.waiting == 0
    assert ([b"right"] in said) == bool(before)
    assert one.cut(b"more") == []


def test_an_identity_is_told() -> None:
    def property_of(name: bytes, value: bytes) -> bytes:
        return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value

    def said(identity: bytes) -> tuple[object, str]:
        one = cutter()
        body = property_of(b"socket-type", b"REQ") + property_of(b"identity", identity)
        return one.cut(zmtp.GREETING + zmtp.command(b"READY", body))[-1], one.fault

    assert said(b"node") == (Ready(b"node"), "")
    assert said(b"x" * 256)[1] == said(b"\0x")[1] == "an illegal identity"


def test_a_pong_has_the_context_of_the_ping() -> None:
    assert zmtp.pong(b"abc") == b"\4\x08\4PONGabc"


def test_the_limits_of_a_socket_are_those_of_its_page() -> None:
    """docs/wire/zmtp.md."""
    one = Limits()
    assert (one.message_bytes, one.frames, one.queue_bytes) == (64 << 10, 256, 4 << 20)
    assert (one.connections, one.topics, one.topic_bytes) == (8192, 1024, 1 << 20)
    assert (one.handshake_s, one.stalled_s) == (5, 30)
