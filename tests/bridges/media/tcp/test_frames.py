import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.media.tcp import frames
from bridges.media.tcp.frames import ILLEGAL, CobsDecoder, FramesDecoder, cut, extent, join, join_cobs
from bridges.media.uart.codec import encode
from bus.ledger import Stats
from bus.wire.batch import LENGTH, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.support import FRAME, MESSAGE, SIZES, frame

bare_frames = st.builds(
    pack,
    st.integers(0, 255),
    st.lists(st.integers(0, 2**32 - 1), max_size=6),
    st.binary(max_size=40),
)
u32 = st.integers(0, 2**32 - 1)
envelopes = st.builds(wrap, bare_frames, st.builds(Envelope, u32, u32, st.integers(0, 15), st.just(0)))
messages = st.one_of(bare_frames, envelopes)
runs = st.tuples(messages, st.integers(1, 40)).map(lambda pair: [pair[0]] * pair[1])
streams = st.lists(runs, max_size=6).map(lambda parts: [message for part in parts for message in part])


def feed(decoder: FramesDecoder | CobsDecoder, data: bytes) -> list[bytes]:
    """Feed data through the decoder's own buffer, as much as fits at a time."""
    found = []
    while data:
        lent = decoder.buffer()
        size = min(len(lent), len(data))
        lent[:size] = data[:size]
        batch = decoder.feed(size)
        data = data[size:]
        found += payloads(batch) if batch else []
    return found


def one_by_one(decoder: FramesDecoder | CobsDecoder, data: bytes) -> list[bytes]:
    return [message for byte in data for message in feed(decoder, bytes((byte,)))]


def decoder() -> FramesDecoder:
    return FramesDecoder(bytearray(4096))


def test_worked_example() -> None:
    stream = FRAME + MESSAGE
    assert feed(decoder(), stream) == [FRAME, MESSAGE]
    assert one_by_one(decoder(), stream) == [FRAME, MESSAGE]
    assert feed(decoder(), stream + MESSAGE[:20]) == [FRAME, MESSAGE]
    assert join(from_payloads([FRAME, MESSAGE])) == (stream, 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [1, 15, 16, 17, 300])
def test_equal_frames_in_a_row(size: int, count: int) -> None:
    said = [frame(size, seed) for seed in range(count)]
    batch = from_payloads(said)
    stream, joined = join(batch)
    assert (stream, joined) == (b"".join(said), count)
    found, taken, legal = cut(stream + frame(3000)[:100])
    assert found is not None
    assert (bytes(found.data), found.count) == (bytes(batch.data), count)
    assert (taken, legal) == (len(stream), True)


def test_equal_envelopes_in_a_row() -> None:
    said = [wrap(frame(64, n), Envelope(7, n)) for n in range(500)]
    stream, joined = join(from_payloads(said))
    assert (stream, joined) == (b"".join(said), 500)
    assert feed(decoder(), stream) == said


@settings(max_examples=50)
@given(streams, st.data())
def test_cuts_change_nothing(said: list[bytes], data: st.DataObject) -> None:
    stream, joined = join(from_payloads(said))
    assert (stream, joined) == (b"".join(said), len(said))
    assert feed(decoder(), stream) == said
    cutter, found, position = decoder(), list[bytes](), 0
    while position < len(stream):
        step = data.draw(st.integers(1, 2000))
        found += feed(cutter, stream[position : position + step])
        position += step
    assert found == said
    assert cutter.fault is None


@pytest.mark.parametrize("spoil", [0, 2, 3, 13, 14, 15])
def test_one_odd_layout_in_a_run_is_seen(spoil: int) -> None:
    """A run is checked: an envelope that disagrees with its frame ends the stream there."""
    said = [wrap(frame(64, n), Envelope(7, n)) for n in range(100)]
    odd = bytearray(said[60])
    odd[spoil] ^= 0x20
    pieces = [*said[:60], bytes(odd), *said[61:]]
    one_at_a_time = decoder()
    expected = [message for piece in pieces for message in feed(one_at_a_time, piece)]
    whole = decoder()
    assert feed(whole, b"".join(pieces))[:60] == said[:60] == expected[:60]
    assert (whole.fault is None) == (one_at_a_time.fault is None)


@settings(max_examples=50)
@given(streams, st.binary(max_size=300))
def test_noise_never_raises_and_what_came_before_it_is_kept(said: list[bytes], noise: bytes) -> None:
    whole, single = decoder(), decoder()
    stream = b"".join(said) + noise
    data, found = stream, list[bytes]()
    while data and not single.fault:
        found += feed(single, data[:1])
        data = data[1:]
    assert found[: len(said)] == said
    batch, _, legal = cut(stream)
    assert (payloads(batch) if batch else []) == found
    assert legal == (single.fault is None)
    assert feed(whole, b"".join(said)) == said


@pytest.mark.parametrize(
    "head",
    [
        bytes.fromhex("01000801"),  # 2049 data bytes
        bytes.fromhex("0100ffff"),
        b"\xff" * 200,
        bytes.fromhex("e108e011"),
        MESSAGE[:3] + b"\x12" + MESSAGE[4:],  # an envelope that announces another length than its frame
    ],
)
def test_an_illegal_header_is_a_fault_with_its_bytes(head: bytes) -> None:
    faulty = decoder()
    assert feed(faulty, FRAME + head) == [FRAME]
    assert faulty.fault == f"not a frame: {head[:4].hex(' ')}"
    assert feed(decoder(), head) == []


def test_extent_tells_before_the_message_is_whole() -> None:
    assert extent(MESSAGE, 0, 3) == 0
    assert extent(MESSAGE, 0, 15) == 0
    assert extent(MESSAGE, 0, 16) == len(MESSAGE)
    assert extent(FRAME, 0, 4) == len(FRAME)


@pytest.mark.parametrize("before", [b"", b"xyz", FRAME])
def test_extent_looks_only_at_what_there_is(before: bytes) -> None:
    start = len(before)
    for message, needed in ((FRAME, 4), (MESSAGE, 16)):
        data = before + message
        assert [extent(data, start, start + size) for size in range(needed)] == [0] * needed
        assert extent(data, start, start + needed) == len(message)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        ("e108f804" + 8 * "00" + "01000800", 12 + 2052),
        ("e108f805" + 8 * "00" + "01000801", ILLEGAL),  # 2049 data bytes
        ("e108fc00" + 8 * "00" + "01ff0800", 12 + 3072),
        ("e108fc01" + 8 * "00" + "01ff0800", ILLEGAL),
        ("e108f004" + 8 * "00" + "01000000", 12 + 4),
        ("e108f000" + 8 * "00" + "01000000", ILLEGAL),
        ("e108f000", 0),  # an envelope may come
        ("e108f000" + 8 * "00" + "010000", 0),
        ("e108efff", ILLEGAL),
        ("e108efff" + 8 * "00" + "01000fff", ILLEGAL),
        ("e008f004" + 8 * "00" + "01000000", ILLEGAL),
        ("01000800", 4 + 2048),
        ("01ff0800", 4 + 4 * 255 + 2048),
        ("e1080000", 4 + 4 * 8),
    ],
)
def test_the_length_of_a_message_by_its_header(head: str, size: int) -> None:
    assert extent(bytes.fromhex(head), 0, len(head) // 2) == size


@pytest.mark.parametrize("size", [4, 5, 64, 3072])
def test_16_equal_messages_are_joined_without_a_step_for_each(size: int) -> None:
    for count, quick in ((15, False), (16, True), (17, True), (300, True)):
        said = [frame(size, seed) for seed in range(count)] if size < 99 else [frame(size)] * count
        batch = from_payloads(said)
        assert frames._join_equal(batch.keep(), count) == (b"".join(said) if quick else None)  # noqa: SLF001


def test_messages_that_imitate_a_run_are_not_taken_for_one() -> None:
    """Every 160 bytes there seem to be the same length and a frame; the lengths between them do not fit."""
    blocks = (LENGTH.pack(2244) + pack(1, [], bytes(148))) * 16
    batch = from_payloads([blocks[8:2252], *[b""] * 14, blocks[2372:]])
    assert len(batch.data) == len(blocks) == 16 * 160
    assert join(batch) == (b"", 0)


@pytest.mark.parametrize("count", [1, 40])
def test_the_longest_message_passes(count: int) -> None:
    longest = wrap(frame(3072), Envelope(7, 1))
    stream, joined = join(from_payloads([longest] * count))
    assert (len(longest), stream, joined) == (3084, longest * count, count)
    batch, taken, legal = cut(stream)
    assert batch
    assert (payloads(batch), taken, legal) == ([longest] * count, len(stream), True)


def test_what_has_begun_waits() -> None:
    for made, stream in ((decoder(), MESSAGE), (CobsDecoder(bytearray(99), Stats()), encode(MESSAGE)[:-1])):
        assert made.waiting == 0
        feed(made, stream[:20])
        assert made.waiting == (20 if stream is MESSAGE else 19)
        made.revise(4)
        assert feed(made, stream[20:] + b"\0") == [MESSAGE]
        assert made.waiting == (stream is MESSAGE)


def test_cobs_carries_messages_of_4_to_3084_bytes() -> None:
    sizes = (3, 4, 3084, 3085)
    stream, count = join_cobs(from_payloads([bytes(size) for size in sizes]))
    assert (stream, count) == (encode(bytes(4)) + encode(bytes(3084)), 2)


@pytest.mark.parametrize("bad", [b"", b"abc", FRAME + b"x", FRAME[:-1], b"\xe2\x05\xff\x00", MESSAGE[:-1]])
@pytest.mark.parametrize("count", [1, 40])
def test_what_would_cost_the_receiver_its_place_is_left_out(bad: bytes, count: int) -> None:
    assert join(from_payloads([bad] * count)) == (b"", 0)
    said = [FRAME] * count
    assert join(from_payloads([*said, bad, MESSAGE])) == (b"".join(said) + MESSAGE, count + 1)


def test_an_odd_one_of_equal_size_is_left_out() -> None:
    odd = bytearray(FRAME)
    odd[3] += 1
    said = [FRAME] * 30 + [bytes(odd)] + [FRAME] * 30
    assert join(from_payloads(said)) == (FRAME * 60, 60)


def test_mixed_and_equal_in_turn() -> None:
    source = random.Random(1)
    said = []
    for _ in range(30):
        said += [frame(source.choice(SIZES), source.randrange(99))] * source.choice((1, 3, 40, 400))
    stream = join(from_payloads(said))[0]
    batch, taken, legal = cut(stream)
    assert batch is not None
    assert (payloads(batch), taken, legal) == (said, len(stream), True)


def test_cobs() -> None:
    stats = Stats()
    said = [frame(size) for size in SIZES]
    stream, count = join_cobs(from_payloads([*said, b"", bytes(4000)]))
    assert (stream, count) == (b"".join(map(encode, said)), len(said))
    assert feed(CobsDecoder(bytearray(4096), stats), b"noise" + stream) == said
    assert (stats.rejected, stats.noise_bytes) == ({"cobs": 1}, 5)
    assert one_by_one(CobsDecoder(bytearray(1), stats), stream) == said


class Counted(bytes):
    """Data that counts the bytes that are copied out of it by slices."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.copied += len(found) if isinstance(found, bytes) else 0
        return found


@pytest.mark.parametrize("run", [1, 15, 16, 17, 40, 127, 129, 255, 256, 257, 4096])
def test_no_mix_of_layouts_makes_the_search_look_at_more_than_there_is(run: int) -> None:
    data = Counted(b"".join(pack(1, (), bytes(number // run % 2)) for number in range(20_000)))
    batch, position, legal = cut(data)
    assert (batch and batch.count, position, legal) == (20_000, len(data), True)
    assert data.copied < 4 * len(data)
