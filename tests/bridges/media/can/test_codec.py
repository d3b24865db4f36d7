from binascii import crc_hqx
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.can.codec import FD_LENGTHS, Reassembler, can_id, segment, transfer_seconds
from bus.wire.envelope import Envelope, message_bytes, wrap
from tests.bridges.support import MESSAGE, SIZES, frame

CLASSIC = [
    "e108f011a1b2c3a3",
    "d400000007020203",
    "0005112233445523",
    "66778868656c6c03",
    "6fb5ce63",
]
FD = ["e108f011a1b2c3d400000007020200051122334455667788" + "68656c6c6f0000e3"]
ID = 0x10723405


def feed_all(
    reassembler: Reassembler, frames: list[bytes], now: float = 0.0, sender: int = ID
) -> list[bytes]:
    found = (reassembler.feed(now, sender, data) for data in frames)
    return [message for message in found if message is not None]


def test_identifier() -> None:
    assert can_id(0x1234, 5) == ID


@pytest.mark.parametrize(("fd", "wire"), [(False, CLASSIC), (True, FD)])
def test_worked_examples(fd: bool, wire: list[str]) -> None:
    frames = segment(MESSAGE, 3, fd)
    assert [data.hex() for data in frames] == wire
    assert feed_all(Reassembler(), frames) == [MESSAGE]


@pytest.mark.parametrize("fd", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int, fd: bool) -> None:
    reassembler = Reassembler()
    for tid, message in enumerate((frame(size), wrap(frame(size), Envelope(1, 2)))):
        frames = segment(message, tid, fd)
        assert all(len(data) in FD_LENGTHS and len(data) <= (64 if fd else 8) for data in frames)
        assert feed_all(reassembler, frames) == [message]
    assert reassembler.rejected == {}


LEGAL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64)  # ISO 11898-1: data bytes of a CAN FD frame


@pytest.mark.parametrize("size", range(8, 64))
def test_a_frame_that_is_alone_is_padded_to_the_next_legal_length(size: int) -> None:
    (data,) = segment(bytes(size), 3, True)
    assert len(data) == min(legal for legal in LEGAL if legal > size)


@pytest.mark.parametrize("size", range(64, 200))
def test_the_last_of_several_is_padded_to_the_next_legal_length(size: int) -> None:
    *frames, last = segment(bytes(size), 3, True)
    assert {len(data) for data in frames} == {64}
    rest = size + 2 - 63 * len(frames)
    assert len(last) == min(legal for legal in LEGAL if legal > rest)


def test_frame_counts_of_the_specification() -> None:
    sizes = [len(wrap(frame(size), Envelope(1, 2))) for size in (20, 200, 2048)]
    assert [len(segment(bytes(size), 0)) for size in sizes] == [5, 31, 295]
    assert [len(segment(bytes(size), 0, True)) for size in sizes] == [1, 4, 33]


@given(st.binary(min_size=8, max_size=400), st.booleans())
def test_crc_covers_the_padding(payload: bytes, fd: bool) -> None:
    frames = segment(payload, 0, fd)
    joined = b"".join(data[:-1] for data in frames)
    assert joined.startswith(payload)
    assert len(frames) == 1 or crc_hqx(joined, 0xFFFF) == 0


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from(SIZES[:14])), max_size=12),
    st.randoms(),
    st.booleans(),
)
def test_interleaved_senders(sends: list[tuple[int, int]], order: Random, fd: bool) -> None:
    queues: dict[int, list[bytes]] = {}
    expected: dict[int, list[bytes]] = {}
    for tid, (node, size) in enumerate(sends):
        queues.setdefault(node, []).extend(segment(frame(size, tid), tid, fd))
        expected.setdefault(node, []).append(frame(size, tid))
    found: dict[int, list[bytes]] = {}
    reassembler = Reassembler()
    while queues:
        node = order.choice(sorted(queues))
        message = reassembler.feed(0.0, can_id(0x1234, node), queues[node].pop(0))
        if message is not None:
            found.setdefault(node, []).append(message)
        if not queues[node]:
            del queues[node]
    assert found == expected


@given(st.lists(st.integers(0, 30), unique=True, min_size=1), st.booleans())
def test_lost_frames_lose_their_transfers_only(lost: list[int], fd: bool) -> None:
    messages = [frame(200 + index) for index in range(4)]
    frames = [(index, data) for index, message in enumerate(messages) for data in segment(message, index, fd)]
    hit = {frames[at][0] for at in lost if at < len(frames)}
    kept = [data for at, (_, data) in enumerate(frames) if at not in lost]
    assert feed_all(Reassembler(), kept) == [m for index, m in enumerate(messages) if index not in hit]


@given(st.lists(st.tuples(st.integers(0, 2**29 - 1), st.binary(max_size=64), st.floats(0, 3)), max_size=60))
def test_noise_never_raises(noise: list[tuple[int, bytes, float]]) -> None:
    reassembler, now = Reassembler(), 0.0
    for identifier, data, step in noise:
        now += step
        reassembler.feed(now, identifier, data)
        reassembler.feed(now, ID, data)
    assert feed_all(reassembler, segment(MESSAGE, 3), now + 10) == [MESSAGE]


@pytest.mark.parametrize(("size", "bits"), [(0, 90), (7, 160), (8, 160 + 120)])
def test_the_bits_of_a_classic_transfer_with_all_its_stuff_bits(size: int, bits: int) -> None:
    assert transfer_seconds(size, 1000) == bits / 1000


@pytest.mark.parametrize(("size", "bits"), [(7, 113), (15, 193), (19, 238), (63, 678), (64, 678 + 73)])
def test_the_bits_of_the_data_phase_of_an_fd_transfer(size: int, bits: int) -> None:
    frames = 1 + (size > 63)
    assert transfer_seconds(size, 1000, 500) == pytest.approx(frames * 57 / 1000 + bits / 500)


def test_doubled_frames_are_one_transfer() -> None:
    reassembler = Reassembler()
    doubled = [data for data in segment(MESSAGE, 3) for _ in range(2)]
    assert feed_all(reassembler, doubled) == [MESSAGE]
    assert reassembler.rejected == {"repeat": 4, "orphan": 1}


def test_doubled_transfer_within_two_seconds() -> None:
    reassembler = Reassembler()
    frames = segment(frame(6), 9)
    assert feed_all(reassembler, frames, 0.0) == [frame(6)]
    assert feed_all(reassembler, frames, 1.9) == []
    assert feed_all(reassembler, frames, 4.1) == [frame(6)]
    assert reassembler.rejected == {"duplicate": 1}


@pytest.mark.parametrize(("late_s", "whole"), [(0.4, []), (0.6, [MESSAGE])])
def test_a_program_that_stood_still_hears_no_gap_where_none_was(late_s: float, whole: list[bytes]) -> None:
    reassembler = Reassembler()
    first, *others = segment(MESSAGE, 3)
    assert reassembler.feed(0.0, ID, first) is None
    heard = [reassembler.feed(1.5, ID, data, late_s) for data in others]
    assert [one for one in heard if one is not None] == whole


def test_a_doubled_transfer_is_one_though_it_is_read_late() -> None:
    reassembler, (only,) = Reassembler(), segment(MESSAGE, 3, True)
    heard = [reassembler.feed(now, ID, only, late_s) for now, late_s in ((0.0, 0.0), (3.0, 2.0), (3.0, 0.0))]
    assert [one is not None for one in heard] == [True, False, True]


@pytest.mark.parametrize("fd", [False, True])
@pytest.mark.parametrize("size", [6, 40, 200])
def test_node_started_again_comes_to_the_same_transfer_id(size: int, fd: bool) -> None:
    reassembler = Reassembler()
    last, first = frame(size), frame(size)[:-1] + b"!"
    assert feed_all(reassembler, segment(last, 9, fd), 0.0) == [last]
    assert feed_all(reassembler, segment(first, 9, fd), 0.1) == [first]
    assert reassembler.rejected == {}


@pytest.mark.parametrize(
    ("frames", "times", "reason"),
    [
        (segment(MESSAGE, 3)[:2] + segment(MESSAGE, 4)[2:3], (0, 0, 0), "order"),
        (segment(MESSAGE, 3)[:2], (0, 1.01), "gap"),
        (segment(MESSAGE, 3)[1:2], (0,), "orphan"),
        (segment(MESSAGE, 3)[:2] + segment(MESSAGE, 4)[:1], (0, 0, 0), "unfinished"),
        ([b"abc\xc3"], (0,), "toggle"),
        ([b"abc\xa3"], (0,), "width"),
        ([b""], (0,), "empty"),
        ([b"abcdef\xe3"], (0,), "malformed"),
        ([*segment(MESSAGE, 3)[:4], b"\x6e\xb5\xce\x63"], (0,) * 5, "crc"),
    ],
)
def test_rejected(frames: list[bytes], times: tuple[float, ...], reason: str) -> None:
    reassembler = Reassembler()
    for now, data in zip(times, frames, strict=True):
        assert reassembler.feed(now, ID, data) is None
    assert reassembler.rejected == {reason: 1}
    assert feed_all(reassembler, segment(MESSAGE, 5), 2.0) == [MESSAGE]


@pytest.mark.parametrize(
    ("identifier", "reason"),
    [
        (can_id(0x1235, 5), "foreign"),
        (ID | 1 << 25, "foreign"),
        (ID | 1 << 7, "foreign"),
        (ID | 1 << 23, "foreign"),
        (ID | 1 << 24, "anonymous"),
    ],
)
def test_other_identifiers(identifier: int, reason: str) -> None:
    reassembler = Reassembler()
    assert feed_all(reassembler, segment(MESSAGE, 3, True), 0.0, identifier) == []
    assert reassembler.rejected == {reason: 1}


def test_a_pause_of_a_second_is_none_too_long() -> None:
    first, *others = segment(MESSAGE, 3)
    reassembler = Reassembler()
    reassembler.feed(0.0, ID, first)
    found = [reassembler.feed(now, ID, data) for now, data in enumerate(others, 1)]
    assert found == [None, None, None, MESSAGE]


def test_a_transfer_is_doubled_up_to_two_seconds_later() -> None:
    reassembler = Reassembler()
    times = (10.0, 12.0, 12.5)
    found = [feed_all(reassembler, segment(MESSAGE, 3), now) for now in times]
    assert found == [[MESSAGE], [], [MESSAGE]]


def test_a_transfer_that_begins_again_in_place_of_its_second_frame_is_no_repeat_of_another() -> None:
    reassembler = Reassembler()
    reassembler.feed(0.0, ID, segment(MESSAGE, 3)[0])
    assert feed_all(reassembler, segment(frame(40), 3)) == [frame(40)]
    assert reassembler.rejected == {"unfinished": 1}


def test_all_but_the_last_frame_are_full() -> None:
    reassembler = Reassembler()
    first, second, *_ = segment(MESSAGE, 3)
    reassembler.feed(0.0, ID, first)
    reassembler.feed(0.0, ID, second[1:])
    assert reassembler.rejected == {"width": 1}
    assert reassembler.feed(0.0, ID, first) is None
    assert reassembler.rejected == {"width": 1}


@pytest.mark.parametrize("fd", [False, True])
def test_what_stands_behind_a_message_is_given_with_it_and_no_padding(fd: bool) -> None:
    reassembler = Reassembler(more_bytes=3)
    assert feed_all(reassembler, segment(MESSAGE + b"abc", 3, fd)) == [MESSAGE + b"abc"]
    assert feed_all(reassembler, segment(MESSAGE + b"abcdefg", 4, fd)) == [MESSAGE + b"abc"]


def test_nodes_are_told_apart() -> None:
    reassembler = Reassembler()
    for node in (0, 64, 127):
        assert feed_all(reassembler, segment(MESSAGE, 3), 0.0, can_id(0x1234, node)) == [MESSAGE]
    assert reassembler.rejected == {}


def test_priorities_do_not_matter_to_who_hears() -> None:
    assert can_id(0x1234, 5, 0) == 0x723405
    assert can_id(0x1FFF, 127, 7) == 0x1C7FFF7F
    for priority in range(8):
        assert feed_all(Reassembler(), segment(MESSAGE, 3), 0.0, can_id(0x1234, 5, priority)) == [MESSAGE]


@pytest.mark.parametrize(("more", "reason"), [(0, "crc"), (1, "oversize")])
def test_a_transfer_has_room_for_the_longest_message_its_crc_and_padding(more: int, reason: str) -> None:
    """3167 bytes: a message of 3084, a seal of 18, a CRC of 2, and as much padding as a frame can have."""
    reassembler, joined, tail = Reassembler(), bytes(3167 + more), 0xA0
    for start in range(0, len(joined), 63):
        end = 0x40 if start + 63 >= len(joined) else 0
        assert reassembler.feed(0.0, ID, joined[start : start + 63] + bytes((tail | end,))) is None
        tail = tail & 0x20 ^ 0x20
    assert reassembler.rejected == {reason: 1}


def test_an_endless_transfer_is_given_up() -> None:
    reassembler, toggle = Reassembler(), 0x20
    reassembler.feed(0.0, ID, bytes(63) + b"\xa0")
    for _ in range(100):
        toggle ^= 0x20
        reassembler.feed(0.0, ID, bytes(63) + bytes((toggle,)))
    assert reassembler.rejected["oversize"] == 1


@pytest.mark.parametrize("size", SIZES)
def test_extent(size: int) -> None:
    plain, enveloped = frame(size), wrap(frame(size), Envelope(1, 2))
    for message in (plain, enveloped):
        assert message_bytes(message) == message_bytes(message + bytes(40)) == len(message)
        assert message_bytes(message[:-1]) == 0
    lying = bytearray(enveloped)
    lying[3] ^= 1
    assert message_bytes(lying + bytes(40)) == 0
