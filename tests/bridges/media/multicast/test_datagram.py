from collections.abc import Sequence
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.multicast.datagram import RESIDUE, Decoder, Encoder, run_bytes, unpack, unpack_mixed
from bridges.media.multicast.fragments import BARE, CRC, FRAGMENT, OPEN_MAX, cut
from bridges.media.rtnetlink import parse
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.support import ENVELOPE, FRAME, MESSAGE, SIZES, frame

WHOLE = bytes.fromhex(
    "e1 08 f0 11 a1 b2 c3 d4 00 00 00 07 02 02 00 05 11 22 33 44 55 66 77 88 68 65 6c 6c 6f 0d 4b 7a 96"
)
FIRST = bytes.fromhex("e1 88 f0 11 a1 b2 c3 d4 00 00 00 07 00 00 02 02 00 05 11 22 33 44 55 66 de 84 a6 fe")
SECOND = bytes.fromhex("e1 88 f0 11 a1 b2 c3 d4 00 00 00 07 00 0a 77 88 68 65 6c 6c 6f 5a 6d 5b 13")
BARE_WHOLE = bytes.fromhex("02 02 00 05 11 22 33 44 55 66 77 88 68 65 6c 6c 6f 05 1e cd a0")
ONE = ("10.0.0.1", 4000)
OTHER = ("10.0.0.2", 4000)


def enveloped(bare: bytes, sequence: int = 1) -> bytes:
    return wrap(bare, Envelope(0xABC, sequence))


def encode(messages: Sequence[bytes], datagram_bytes: int = 1400) -> list[bytes]:
    encoder = Encoder(datagram_bytes, origin=0x01020304, sequence=0xFFFFFFFE)
    made = encoder.encode(from_payloads(messages))
    assert sum(count for _, count in made) == len(messages)
    assert all(len(datagram) <= datagram_bytes and crc32(datagram) == RESIDUE for datagram, _ in made)
    assert not encoder.refused
    return [datagram for datagram, _ in made]


def decode(datagrams: Sequence[bytes], decoder: Decoder | None = None, now_s: float = 0.0) -> list[bytes]:
    batch = (decoder or Decoder()).feed([(datagram, ONE) for datagram in datagrams], now_s)
    return payloads(batch) if batch else []


def test_worked_examples() -> None:
    assert encode([MESSAGE]) == [WHOLE]
    assert decode([WHOLE]) == [MESSAGE]
    assert encode([MESSAGE], 28) == [FIRST, SECOND]
    assert decode([FIRST, SECOND]) == decode([SECOND, FIRST]) == [MESSAGE]
    assert encode([FRAME]) == [BARE_WHOLE]
    assert decode([BARE_WHOLE]) == [FRAME]


def test_worked_example_of_two_messages() -> None:
    (both,) = encode([FRAME, MESSAGE])
    assert both.hex(" ") == FRAME.hex(" ") + " " + MESSAGE.hex(" ") + " c8 e2 95 9d"
    assert decode([both]) == [FRAME, MESSAGE]


def test_worked_example_of_a_bare_frame_in_fragments() -> None:
    """The link's own envelope has flags FRAG and BARE and 8 hops; its sequence has just wrapped to 0."""
    bare = pack(2, [0x11223344, 0x55667788], b"hello, hello!")
    made = Encoder(28, 0x01020304, 0xFFFFFFFF).encode(from_payloads([bare]))
    assert [datagram.hex(" ") for datagram, _ in made] == [
        "e1 a8 f0 19 01 02 03 04 00 00 00 00 00 00 02 02 00 0d 11 22 33 44 55 66 e6 ed 8a ad",
        "e1 a8 f0 19 01 02 03 04 00 00 00 00 00 0a 77 88 68 65 6c 6c 6f 2c 20 68 e2 ba f9 35",
        "e1 a8 f0 19 01 02 03 04 00 00 00 00 00 14 65 6c 6c 6f 21 b0 23 92 4c",
    ]
    assert [count for _, count in made] == [0, 0, 1]
    assert decode([datagram for datagram, _ in made]) == [bare]


@pytest.mark.parametrize("datagram_bytes", [19, 64, 508, 1400, 9000, 65507])
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int, datagram_bytes: int) -> None:
    messages = [frame(size), enveloped(frame(size)), frame(size), frame(size)]
    assert decode(encode(messages, datagram_bytes)) == messages


@pytest.mark.parametrize("off_by", [-1, 0, 1])
def test_at_the_edge_of_a_datagram(off_by: int) -> None:
    message = frame(1396 + off_by)
    assert len(encode([message])) == (2 if off_by > 0 else 1)
    assert decode(encode([message])) == [message]


def test_messages_of_different_sizes_fill_datagrams_to_the_byte() -> None:
    pair = [frame(100), frame(1296)]
    assert [len(datagram) for datagram in encode(pair * 3)] == [1400] * 3
    assert [len(datagram) for datagram in encode([frame(100), frame(1297)])] == [104, 1301]


def test_flags_within_a_run_are_seen() -> None:
    message = enveloped(pack(1, [1], bytes(2)))
    flagged = message[:1] + b"\x18" + message[2:]
    decoder = Decoder()
    assert decode([sealed(message * 2 + flagged + message * 2)], decoder) == []
    assert decoder.rejected == {"malformed": 1}


@pytest.mark.parametrize("wrapper", [bytes, enveloped])
@pytest.mark.parametrize("count", [1, 3, 4, 20, 21, 22, 100, 2000])
def test_equal_sizes_share_datagrams(count: int, wrapper: type[bytes]) -> None:
    messages = [wrapper(pack(i & 0xFF, [i], bytes(56))) for i in range(count)]
    per_datagram = 1396 // len(messages[0])
    datagrams = encode(messages)
    assert len(datagrams) == -(-count // per_datagram)
    assert decode(datagrams) == messages


def test_messages_of_any_size_share_datagrams_in_order() -> None:
    messages = [frame(size, seed) for seed in range(3) for size in SIZES]
    datagrams = encode(messages)
    assert decode(datagrams) == messages
    small = [frame(4 + i % 40 * 4) for i in range(500)]
    assert len(encode(small)) <= sum(map(len, small)) // (1396 - 160) + 1
    assert decode(encode(small)) == small


def test_frames_of_type_e1_are_no_envelopes() -> None:
    messages = [pack(0xE1, [1, 2], b"data") for _ in range(8)]
    assert decode(encode(messages)) == messages
    assert decode(encode(messages[:1], 20)) == messages[:1]


frames = st.builds(
    lambda kind, tokens, size: pack(kind, tokens, bytes(size)),
    st.integers(0, 255),
    st.lists(st.integers(0, 2**32 - 1), max_size=6),
    st.one_of(st.integers(0, 40), st.integers(0, 2048)),
)
messages_of_any_kind = st.one_of(frames, st.builds(enveloped, frames, st.integers(0, 2**32 - 1)))


@given(st.lists(messages_of_any_kind, max_size=30), st.integers(19, 4000), st.integers(1, 6))
def test_round_trip(messages: list[bytes], datagram_bytes: int, repeats: int) -> None:
    messages = [message for message in messages for _ in range(repeats)]
    assert decode(encode(messages, datagram_bytes)) == messages


@given(st.lists(messages_of_any_kind, min_size=1, max_size=8), st.integers(1, 200))
def test_a_run_is_packed_like_its_messages_one_by_one(messages: list[bytes], repeats: int) -> None:
    encoder = Encoder(1400, 1, 1)
    batch = from_payloads(messages * repeats)
    size = run_bytes(batch)
    assert size == 0 or {len(message) for message in messages} == {size}
    one_by_one = Encoder(1400, 1, 1).pack(payloads(batch))
    assert encoder.encode(batch) == one_by_one


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"abc",
        FRAME[:-1],
        FRAME + b"x",
        ENVELOPE,
        bytes(4) + bytes(4),
        MESSAGE[:3] + b"\x12" + MESSAGE[4:],
        b"\xe1\x88" + MESSAGE[2:],
        b"\xe1\x18" + MESSAGE[2:],
    ],
)
def test_what_is_no_message_is_refused_and_harms_nobody(bad: bytes) -> None:
    for batch in ([FRAME, bad, FRAME], [bad] * 9, [FRAME] * 9 + [bad]):
        encoder = Encoder(1400, 1, 1)
        made = encoder.encode(from_payloads(batch))
        wanted = [message for message in batch if message == FRAME]
        assert encoder.refused == {"malformed": batch.count(bad)}
        assert sum(count for _, count in made) == len(wanted)
        assert decode([datagram for datagram, _ in made]) == wanted


@pytest.mark.parametrize("offset", range(16))
@pytest.mark.parametrize("message", [FRAME, MESSAGE, bytes(20)])
def test_a_run_with_one_header_byte_wrong(message: bytes, offset: int) -> None:
    """A check of each message must find what a check by columns could miss."""
    wrong = message[:offset] + bytes((message[offset] ^ 0x10,)) + message[offset + 1 :]
    messages = [message] * 5 + [wrong] + [message] * 5
    encoder, one_by_one = Encoder(1400, 1, 1), Encoder(1400, 1, 1)
    assert encoder.encode(from_payloads(messages)) == one_by_one.pack(messages)
    assert encoder.refused == one_by_one.refused
    found, mixed = list[bytes](), list[bytes]()
    assert unpack(b"".join(messages), found) == unpack_mixed(b"".join(messages), mixed)
    assert b"".join(found) == b"".join(mixed)


def test_a_message_that_imitates_a_run_is_not_taken_for_one() -> None:
    """The strides of all five look like frames of 4 bytes; the lengths between them do not."""
    small = pack(1, [], b"")
    batch = from_payloads([small, small + bytes(7) + b"\4" + small, b"", b"", b""])
    assert len(batch.data) == 5 * 12
    encoder = Encoder(1400, 1, 1)
    assert encoder.encode(batch) == Encoder(1400, 1, 1).pack([small])
    assert encoder.refused == {"malformed": 4}


def sealed(body: bytes) -> bytes:
    return body + CRC.pack(crc32(body))


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "short"),
        (sealed(b""), "short"),
        (sealed(b"abc"), "short"),
        (WHOLE[:-1], "crc"),
        (WHOLE[:-1] + b"\0", "crc"),
        (b"M-SEARCH * HTTP/1.1\r\n", "crc"),
        (b"12345678", "crc"),
        (b"1234567", "short"),
        (sealed(FRAME + b"x"), "malformed"),
        (sealed(FRAME * 5 + FRAME[:-1]), "malformed"),
        (sealed(FRAME * 5 + FRAME[:2] + b"\xff" + FRAME[3:]), "malformed"),
        (sealed(b"\xe1\x18" + MESSAGE[2:]), "malformed"),
        (sealed(MESSAGE * 5 + b"\xe1\x88" + MESSAGE[2:]), "malformed"),
        (sealed(FIRST[:14]), "fragment length"),
        (sealed(FIRST[:10]), "fragment length"),
        (sealed(FIRST[:12] + b"\x00\x11x"), "fragment length"),
        (sealed(FIRST[:12] + b"\xff\xffx"), "fragment length"),
        (sealed(b"\xe1\x88\xff\xff" + FIRST[4:12] + b"\0\0x"), "fragment length"),
        (sealed(b"\xe1\x88\xf0\x03" + FIRST[4:12] + b"\0\0xyz"), "fragment length"),
        (sealed(b"\xe1\x88\xf0\x05" + FIRST[4:12] + b"\0\0" + bytes(5)), "malformed"),
        (sealed(b"\xe1\x98\xf0\x04" + FIRST[4:12] + b"\0\0" + bytes(4)), "malformed"),
    ],
)
def test_rubbish_is_counted_and_the_next_is_heard(datagram: bytes, reason: str) -> None:
    decoder = Decoder()
    assert decode([datagram, WHOLE], decoder) == [MESSAGE]
    assert decoder.rejected == {reason: 1}


@given(st.lists(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(sealed)), max_size=20))
def test_noise_never_raises(datagrams: list[bytes]) -> None:
    decoder = Decoder()
    decode(datagrams, decoder)
    assert decode([WHOLE], decoder) == [MESSAGE]


@given(st.binary(max_size=40), st.integers(0, 255))
def test_fragments_of_nonsense_never_raise(noise: bytes, flags: int) -> None:
    decoder = Decoder()
    for head in (b"\xe1" + bytes((flags | FRAGMENT,)) + b"\xf0", b"\xe1\x80\xf0\x04"):
        decode([sealed(head + noise)], decoder)
    assert decoder.reassembly.unfinished <= 2


def test_a_large_datagram_of_the_smallest_frames() -> None:
    messages = [bytes(4)] * 5000
    assert decode(encode(messages, 65507)) == messages
    assert decode([sealed(bytes(4) * 16000)]) == [bytes(4)] * 16000


@given(st.data())
def test_fragments_lost_repeated_and_out_of_order(data: st.DataObject) -> None:
    sent = [enveloped(frame(size, size), size) for size in (200, 700, 1500)]
    fragments = [(i, piece) for i, message in enumerate(sent) for piece in cut(message, 200)]
    arrived = data.draw(st.lists(st.sampled_from(fragments), max_size=60))
    decoder = Decoder()
    found = decode([piece for _, piece in arrived], decoder)
    assert set(found) <= set(sent)
    for i, message in enumerate(sent):
        own = {piece for j, piece in fragments if j == i}
        complete = own <= {piece for j, piece in arrived if j == i}
        assert (message in found) == complete
    decoder.reassembly.expire(2.0)
    assert decoder.reassembly.unfinished == 0


@given(st.permutations(cut(enveloped(frame(1500)), 200)))
def test_fragments_in_any_order(pieces: list[bytes]) -> None:
    assert decode(pieces) == [enveloped(frame(1500))]


def test_equal_bare_frames_in_fragments_all_arrive() -> None:
    messages = [frame(3072)] * 5
    assert decode(encode(messages)) == messages


def test_overlapping_fragments() -> None:
    message = enveloped(frame(300))
    coarse, fine = cut(message, 200), cut(message, 100)
    assert decode([coarse[0], *fine[1:]]) == [message]


def test_two_senders_do_not_mix() -> None:
    mine, yours = enveloped(frame(600, 1)), enveloped(frame(600, 2))
    decoder, found = Decoder(), list[bytes]()
    for one, other in zip(cut(mine, 200), cut(yours, 200), strict=True):
        batch: Batch | None = decoder.feed([(one, ONE), (other, OTHER)], 0.0)
        found += payloads(batch) if batch else []
    assert found == [mine, yours]


def test_an_unfinished_message_is_given_up_after_a_second() -> None:
    decoder = Decoder()
    assert decode([FIRST], decoder, 10.0) == []
    assert decode([FIRST], decoder, 11.0) == []
    assert decoder.rejected == {}
    assert decode([SECOND], decoder, 11.1) == []
    assert decoder.rejected == {"fragment timeout": 1}
    assert decode([FIRST], decoder, 11.2) == [MESSAGE]


def test_at_most_64_are_unfinished_and_the_oldest_makes_room() -> None:
    decoder = Decoder()
    sent = [cut(enveloped(frame(300), i), 200) for i in range(OPEN_MAX + 1)]
    decode([first for first, *_ in sent], decoder)
    assert decoder.reassembly.unfinished == OPEN_MAX
    assert decoder.rejected == {"fragment overflow": 1}
    assert decode([second for _, second in sent[1:]], decoder) == [
        enveloped(frame(300), i) for i in range(1, OPEN_MAX + 1)
    ]


def test_a_late_copy_of_a_fragment_is_no_message_lost() -> None:
    decoder = Decoder()
    assert decode([FIRST, SECOND, SECOND], decoder) == [MESSAGE]
    decoder.reassembly.expire(5.0)
    assert decoder.rejected == {"fragment repeated": 1}


def test_the_bare_flag_takes_the_link_s_envelope_off() -> None:
    kept = cut(MESSAGE, 28)
    bare = cut(MESSAGE[:1] + bytes((MESSAGE[1] | BARE,)) + MESSAGE[2:], 28)
    assert decode(kept) == [MESSAGE]
    assert decode(bare) == [FRAME]


def test_no_fragment_fits() -> None:
    with pytest.raises(ValueError, match="19"):
        Encoder(18, 0, 0)
    with pytest.raises(ValueError, match="19"):
        cut(MESSAGE, 18)


@given(st.binary(max_size=200), st.sampled_from([2, 3, 16, 17, 20, 21]))
def test_what_the_kernel_says_is_parsed_with_care(noise: bytes, kind: int) -> None:
    list(parse(noise))
    list(parse((16 + len(noise)).to_bytes(4, "little") + bytes((kind, 0)) + bytes(10) + noise))
