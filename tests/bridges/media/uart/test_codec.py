import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.codec import (
    CODED_BYTES_MAX,
    SEALED_BYTES_MAX,
    WIRE_BYTES_MAX,
    Decoder,
    cobs_decode,
    cobs_encode,
    encode,
    wire_bytes_max,
)
from bus.wire.envelope import MESSAGE_BYTES_MAX
from tests.bridges.support import FRAME, MESSAGE, SIZES, frame

ENVELOPED = (
    "00 09 e1 08 f0 11 a1 b2 c3 d4 01 01 04 07"
    " 02 02 13 05 11 22 33 44 55 66 77 88 68 65 6c 6c 6f 0d 4b 7a 96 00"
)
PLAIN = "00 03 02 02 13 05 11 22 33 44 55 66 77 88 68 65 6c 6c 6f 05 1e cd a0 00"

messages = st.binary(min_size=4, max_size=700)


def one_by_one(stream: bytes, decoder: Decoder) -> list[bytes]:
    return [message for byte in stream for message in decoder.feed(bytes((byte,)))]


@pytest.mark.parametrize(("message", "wire"), [(MESSAGE, ENVELOPED), (FRAME, PLAIN)])
def test_worked_examples(message: bytes, wire: str) -> None:
    stream = bytes.fromhex(wire)
    assert encode(message) == stream
    assert Decoder().feed(stream) == [message]
    assert one_by_one(stream, Decoder()) == [message]
    assert Decoder().feed(stream + stream[:9]) == [message]


@pytest.mark.parametrize(
    ("data", "coded"),
    [  # Cheshire and Baker's examples, and the edges of a block of 254
        ("", "01"),
        ("00", "0101"),
        ("0000", "010101"),
        ("11220033", "0311220233"),
        ("11000000", "0211010101"),
        ("aa" * 253, "fe" + "aa" * 253),
        ("aa" * 253 + "00bb", "fe" + "aa" * 253 + "02bb"),
        ("aa" * 254, "ff" + "aa" * 254),
        ("aa" * 254 + "00bb", "ff" + "aa" * 254 + "0102bb"),
        ("aa" * 508, "ff" + "aa" * 254 + "ff" + "aa" * 254),
        ("aa" * 508 + "00", "ff" + "aa" * 254 + "ff" + "aa" * 254 + "0101"),
        ("aa" * 509 + "00", "ff" + "aa" * 254 + "ff" + "aa" * 254 + "02aa01"),
        ("aa" * 254 + "00", "ff" + "aa" * 254 + "0101"),
        ("aa" * 255, "ff" + "aa" * 254 + "02aa"),
        ("00" + "aa" * 254, "01ff" + "aa" * 254),
    ],
)
def test_cobs(data: str, coded: str) -> None:
    assert cobs_encode(bytes.fromhex(data)).hex() == coded
    assert cobs_decode(bytes.fromhex(coded)) == bytes.fromhex(data)


def test_an_encoder_that_ends_a_full_block_with_an_empty_one_is_understood() -> None:
    assert cobs_decode(b"\xff" + b"a" * 254 + b"\x01") == b"a" * 254


@given(st.binary(max_size=1200))
def test_cobs_round_trip_holds_no_zero(data: bytes) -> None:
    coded = cobs_encode(data)
    assert 0 not in coded
    assert cobs_decode(coded) == data


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int) -> None:
    assert Decoder().feed(encode(frame(size))) == [frame(size)]


def test_longest() -> None:
    longest = b"\xaa" * SEALED_BYTES_MAX
    assert len(encode(longest)) == WIRE_BYTES_MAX == 3121
    assert len(encode(longest[:MESSAGE_BYTES_MAX])) == 3103
    assert one_by_one(encode(longest), Decoder()) == [longest]


@pytest.mark.parametrize(("size", "wire"), [(4, 11), (250, 257), (251, 259), (504, 512), (505, 514)])
def test_a_message_takes_a_byte_more_for_each_254_bytes_and_its_crc_that_it_begins(
    size: int, wire: int
) -> None:
    assert wire_bytes_max(size) == wire
    assert len(encode(b"\xaa" * size)) <= wire


@pytest.mark.parametrize("more", [0, 1])
def test_a_run_may_have_3119_bytes(more: int) -> None:
    run = b"\x01" * (3119 + more) + b"\0"
    for decoder, feed in (
        (whole := Decoder(), whole.feed),
        (cut := Decoder(), lambda data: one_by_one(data, cut)),
    ):
        assert feed(b"\0" + run + encode(MESSAGE)) == [MESSAGE]
        assert decoder.rejected == {("oversize" if more else "crc"): 1}


def test_what_has_begun_waits_and_noise_that_is_too_long_does_not() -> None:
    decoder = Decoder()
    waiting = []
    for data in (b"", b"\0abc", b"de", b"\0", b"\x01" * 3119, b"\x01", b"\x01", b"\0ab"):
        decoder.feed(data)
        waiting.append(decoder.waiting)
    assert waiting == [0, 3, 5, 0, 3119, 0, 0, 2]
    assert decoder.rejected == {"cobs": 1, "oversize": 1}
    counted = dict[str, int]()
    Decoder(counted).feed(b"x\0")
    assert counted == {"cobs": 1}


def test_in_one_piece_a_run_that_is_too_long_is_counted_and_the_last_part_held() -> None:
    decoder = Decoder()
    assert decoder.feed(b"\x01" * 3120 + b"\0" + encode(FRAME) + b"\x01" * 3120) == [FRAME]
    assert (decoder.rejected, decoder.waiting) == ({"oversize": 2}, 0)
    assert decoder.feed(b"\x01" * 3120 + encode(FRAME)) == [FRAME]
    assert decoder.rejected == {"oversize": 2}


@pytest.mark.parametrize("size", [0, 3, SEALED_BYTES_MAX + 1])
def test_encode_refuses(size: int) -> None:
    with pytest.raises(ValueError, match="4 to 3102"):
        encode(bytes(size))


@given(st.lists(st.one_of(messages.map(encode), st.binary(max_size=60))), st.data())
def test_cuts_change_nothing(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    whole, cut = Decoder(), Decoder()
    expected = whole.feed(stream)
    found, position = [], 0
    while position < len(stream):
        step = data.draw(st.integers(1, 400))
        found += cut.feed(stream[position : position + step])
        position += step
    assert found == expected
    assert cut.rejected == whole.rejected


@given(st.lists(st.tuples(st.binary(max_size=400), messages), max_size=8))
def test_every_message_survives_noise_before_it(pairs: list[tuple[bytes, bytes]]) -> None:
    stream = b"".join(noise + encode(message) for noise, message in pairs)
    assert Decoder().feed(stream) == [message for _, message in pairs]


@given(st.binary(max_size=8000))
def test_noise_never_raises_and_a_message_after_it_is_found(noise: bytes) -> None:
    decoder = Decoder()
    decoder.feed(noise)
    assert decoder.feed(encode(MESSAGE))[-1:] == [MESSAGE]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (b"\x05ab", "cobs"),
        (cobs_encode(b"abc" + zlib.crc32(b"abc").to_bytes(4, "little")), "short"),
        (cobs_encode(MESSAGE + b"\x0d\x4b\x7a\x97"), "crc"),
        (b"\x01" * (CODED_BYTES_MAX + 1), "oversize"),
    ],
)
def test_rejects_are_counted_once_and_sync_is_kept(run: bytes, reason: str) -> None:
    stream = b"\0" + run + encode(MESSAGE)
    for decoder, found in ((d := Decoder(), d.feed(stream)), (d := Decoder(), one_by_one(stream, d))):
        assert found == [MESSAGE]
        assert decoder.rejected == {reason: 1}


def test_endless_noise_without_a_zero_holds_nothing() -> None:
    decoder = Decoder()
    for _ in range(1000):
        assert decoder.feed(b"\x55" * 1000) == []
    assert decoder.rejected == {"oversize": 1}
    assert decoder.feed(encode(MESSAGE)) == [MESSAGE]
