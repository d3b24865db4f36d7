"""ZMTP on the stream, byte by byte; whatever comes, wherever it is cut, within bounds."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.zeromq import zmtp
from devices.dbp.zeromq.zmtp import FITS, Cutter, Hello, Ping, Ready

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
        (START + zmtp.command(b"ERROR", b"\4away"), "the peer refuses; it said: away"),
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


def property_of(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


REQ = property_of(b"socket-type", b"REQ")


def answer_to(properties: bytes) -> tuple[object, str]:
    """Return the last thing that a peer with these properties has said, and the fault."""
    one = cutter()
    return one.cut(zmtp.GREETING + zmtp.command(b"READY", properties))[-1], one.fault


@pytest.mark.parametrize("identity", [b"node", b"x" * 255])
def test_an_identity_is_told(identity: bytes) -> None:
    assert answer_to(REQ + property_of(b"identity", identity)) == (Ready(identity), "")


@pytest.mark.parametrize("identity", [b"x" * 256, b"\0x", b"\0"])
def test_an_identity_is_at_most_255_bytes_and_does_not_begin_with_a_zero(identity: bytes) -> None:
    assert answer_to(REQ + property_of(b"identity", identity)) == (Hello(), "an illegal identity")


@pytest.mark.parametrize(
    ("properties", "identity"),
    [
        (property_of(b"identity", b"a") + property_of(b"identity", b"") + REQ, b""),
        (REQ + property_of(b"identity", b"a") + property_of(b"identity", b""), b""),
        (REQ + property_of(b"identity", b"abc")[:-1], b""),
        (REQ + property_of(b"identity", b"abc")[:-4], b""),
        (REQ + b"\x08identity", b""),
        (property_of(b"", b"any") + property_of(b"Identity", b"a") + REQ, b"a"),
        (property_of(b"X-Own", b"x" * 300) + REQ, b""),
    ],
)
def test_of_equal_properties_the_last_holds_and_one_that_is_cut_is_none(
    properties: bytes, identity: bytes
) -> None:
    assert answer_to(properties) == (Ready(identity), "")


@pytest.mark.parametrize(
    ("byte", "fault"), [(0x01, ""), (0x7F, ""), (0xFD, ""), (0x02, "no ZMTP"), (0xFE, "no ZMTP")]
)
def test_the_last_bit_of_the_signature_tells_zmtp(byte: int, fault: str) -> None:
    one = cutter()
    said = one.cut(b"\xff" + bytes(8) + bytes([byte]))
    assert (said, one.fault) == ([] if fault else [Hello()], fault)


@pytest.mark.parametrize(("version", "fault"), [(2, "ZMTP 2"), (3, ""), (4, "")])
def test_a_version_from_3_on_is_spoken_to(version: int, fault: str) -> None:
    one = cutter()
    one.cut(zmtp.GREETING[:10] + bytes([version]) + zmtp.GREETING[11:])
    assert one.fault == fault


def test_the_mechanism_is_all_20_bytes() -> None:
    one = cutter()
    one.cut(zmtp.GREETING[:31] + b"x" + zmtp.GREETING[32:])
    assert one.fault == "another mechanism than NULL"
    one = cutter()
    one.cut(zmtp.GREETING[:11] + b"\1" + zmtp.GREETING[12:32] + b"\1" * 32)
    assert one.fault == "", "the minor version, whether it is a server, and the filler say nothing here"


def greeted(message_bytes: int = 1000, frames: int = 8) -> Cutter:
    one = cutter(message_bytes, frames)
    one.cut(START)
    return one


@pytest.mark.parametrize("frames", [[b"x" * 1000], [b"x" * 400, b"x" * 600], [b"x" * 125] * 8, [b""] * 8])
def test_a_message_of_exactly_the_bounds_passes(frames: list[bytes]) -> None:
    one = greeted()
    assert one.cut(zmtp.pack(frames) + zmtp.pack(frames)) == [frames, frames]
    assert one.fault == ""


def test_a_command_of_exactly_the_bound_passes() -> None:
    one = greeted()
    data = bytes(zmtp.COMMAND_BYTES - 5)
    assert one.cut(zmtp.command(b"PING", data)) == [Ping(bytes(16))]
    assert (one.fault, zmtp.COMMAND_BYTES) == ("", 1024)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300])
def test_a_frame_may_have_the_long_form_whatever_its_size(size: int) -> None:
    one = greeted()
    long = b"\3" + size.to_bytes(8, "big") + bytes(size)
    assert one.cut(long + b"\0\0") == [[bytes(size), b""]]
    assert one.cut(b"\6" + (5).to_bytes(8, "big") + b"\4PING") == [Ping(b"")]
    assert zmtp.pack([bytes(size)])[0] == (2 if size > 255 else 0)


def test_what_waits_is_what_has_come_of_a_message() -> None:
    one = greeted()
    one.cut(zmtp.pack([b"one", b"three"])[:-1])
    assert one.waiting == len(b"one") + 2 + len(b"thre")


def test_a_ping_has_two_bytes_of_time_and_at_most_16_of_context() -> None:
    one = greeted()
    assert one.cut(zmtp.command(b"PING", b"\0\1" + bytes(range(17)))) == [Ping(bytes(range(16)))]


@pytest.mark.parametrize("unknown", [b"\4\0", zmtp.command(b"", b""), zmtp.command(b"SUBSCRIBE", b"x")])
def test_a_command_that_is_not_known_says_nothing(unknown: bytes) -> None:
    one = greeted()
    assert one.cut(unknown + zmtp.pack([b"a"])) == [[b"a"]]


def test_a_pong_has_the_context_of_the_ping() -> None:
    assert zmtp.pong(b"abc") == b"\4\x08\4PONGabc"
