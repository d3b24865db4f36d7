"""The stream decoder: whole, one byte at a time, with a trailer, and over random splits."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.sp import (
    HANDSHAKE,
    LEAD_IPC,
    SCRATCH_BYTES,
    Decoder,
    add_lead,
    divide,
    handshake_fault,
    scan,
    walk,
)

SIZES = st.one_of(st.integers(0, 40), st.sampled_from([16, 16, 16, 64, 300, 3000]))
bodies = st.lists(SIZES.map(lambda n: bytes(i & 0xFF for i in range(n))), max_size=60)


def decode(
    wire: bytes, cuts: list[int], message_bytes: int = 5000, lead: int = 0, scratch_bytes: int = 4096
) -> tuple[list[bytes], Decoder]:
    """Return the bodies of `wire`, cut at `cuts`, read with a buffer so small that every path is used."""
    decoder, out = Decoder(bytearray(scratch_bytes), message_bytes, lead), []
    edges = sorted({0, len(wire), *(c % (len(wire) + 1) for c in cuts)})
    for start, stop in itertools.pairwise(edges):
        while start < stop and not decoder.fault:
            view = decoder.buffer()
            assert len(view)
            n = min(len(view), stop - start)
            view[:n] = wire[start : start + n]
            start += n
            del view
            batch = decoder.feed(n)
            out += payloads(batch) if batch else []
    return out, decoder


@given(bodies, st.lists(st.integers(0, 1 << 20)), st.sampled_from([0, 1]))
def test_any_split_gives_the_same_messages(messages: list[bytes], cuts: list[int], lead: int) -> None:
    batch = from_payloads(messages)
    wire = add_lead(batch) if lead else batch.keep()
    out, decoder = decode(wire, cuts, lead=lead)
    assert out == messages
    assert decoder.fault is None


@pytest.mark.parametrize("lead", [0, 1])
def test_one_byte_at_a_time_and_with_a_trailer(lead: int) -> None:
    messages = [b"", b"x", bytes(100), bytes(4999)]
    batch = from_payloads(messages)
    wire = add_lead(batch) if lead else batch.keep()
    assert decode(wire, list(range(len(wire))), lead=lead)[0] == messages
    out, decoder = decode(wire + bytes([1] * lead) + bytes(7) + b"\x05abc", [], lead=lead)
    assert out == messages
    assert decoder.fault is None


def test_a_message_larger_than_the_read_buffer() -> None:
    """A prototype took a full buffer for the end of the stream."""
    large = [bytes([i]) * 900_000 for i in range(3)]
    assert decode(from_payloads(large).keep(), [], 1_000_000)[0] == large


@pytest.mark.parametrize("size", [1 << 63, 5001, (1 << 64) - 1])
@pytest.mark.parametrize("before", [[], [b"good"] * 40])
def test_an_announced_length_above_the_limit_is_a_fault(size: int, before: list[bytes]) -> None:
    wire = from_payloads(before).keep() + size.to_bytes(8, "big") + bytes(100)
    out, decoder = decode(wire, [])
    assert out == before
    assert decoder.fault is not None
    assert str(size) in decoder.fault


def test_the_limit_holds_for_whole_messages_too() -> None:
    out, decoder = decode(from_payloads([bytes(100), bytes(101), bytes(5)]).keep(), [], 100)
    assert out == [bytes(100)]
    assert decoder.fault is not None


def test_ipc_message_without_its_lead_is_a_fault() -> None:
    wire = bytearray(add_lead(from_payloads([b"a", b"b"])))
    wire[10] = 2
    assert decode(bytes(wire), [], lead=1)[1].fault is not None


def test_counts_are_messages_not_batches() -> None:
    data = bytearray(from_payloads([bytes(64)] * 1000).keep())
    assert scan(data, len(data)) == (1000, len(data))


@given(bodies, st.integers(0, 50), st.sampled_from([0, 1]))
def test_the_fast_scan_agrees_with_the_plain_one(messages: list[bytes], missing: int, lead: int) -> None:
    batch = from_payloads(messages)
    data = bytearray(add_lead(batch) if lead else batch.keep())
    stop = max(0, len(data) - missing)
    assert scan(data, stop, lead) == walk(data, 0, stop, len(data), lead)


def test_handshake_in_pieces_or_wrong() -> None:
    for n in range(1, 9):
        assert handshake_fault(HANDSHAKE[:n]) is None
    assert "not an SP peer" in str(handshake_fault(b"GET "))
    assert "wrong SP protocol: 0x1070, a bus" in str(handshake_fault(bytes.fromhex("0053500010700000")))
    assert "bad SP handshake" in str(handshake_fault(bytes.fromhex("0053500000700100")))
    assert "wrong SP protocol: 0x0010" in str(handshake_fault(bytes.fromhex("0053500000100000")))
    assert "bad SP handshake" in str(handshake_fault(bytes.fromhex("0053500000700001")))
    assert "not an SP peer" in str(handshake_fault(bytes.fromhex("00535001")))


@given(bodies, st.lists(st.integers(0, 1 << 20)), st.sampled_from([0, 1]))
def test_other_limits_at_any_time_change_no_message(
    messages: list[bytes], cuts: list[int], lead: int
) -> None:
    batch = from_payloads(messages)
    wire = add_lead(batch) if lead else batch.keep()
    decoder, out = Decoder(bytearray(4096), 5000, lead), list[bytes]()
    edges = sorted({0, len(wire), *(c % (len(wire) + 1) for c in cuts)})
    for number, (start, stop) in enumerate(itertools.pairwise(edges)):
        while start < stop:
            view = decoder.buffer()
            n = min(len(view), stop - start)
            view[:n] = wire[start : start + n]
            start += n
            del view
            found = decoder.feed(n)
            out += payloads(found) if found else []
            assert not decoder.fault
        decoder.revise((3000, 100_000)[number % 2])
    assert out == messages


def test_a_lower_limit_lets_a_message_end_that_has_begun_and_refuses_the_next() -> None:
    wire = from_payloads([bytes(3000), bytes(3000)]).keep()
    decoder = Decoder(bytearray(4096), 5000)
    out = list[bytes]()
    for start in range(0, len(wire), 100):
        chunk = wire[start : start + 100]
        while chunk and not decoder.fault:
            view = decoder.buffer()
            n = min(len(view), len(chunk))
            view[:n], chunk = chunk[:n], chunk[n:]
            del view
            found = decoder.feed(n)
            out += payloads(found) if found else []
        if not start:
            decoder.revise(2000)
    assert out == [bytes(3000)]
    assert decoder.fault is not None
    assert "at most 2000" in decoder.fault


class Counted(bytearray):
    """A buffer that counts the bytes that are copied into it and out of it by slices."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.copied += len(found) if isinstance(found, bytearray) else 0
        return found

    def __setitem__(self, place: Any, value: Any) -> None:
        self.copied += len(value) if isinstance(place, slice) else 0
        super().__setitem__(place, value)


@pytest.mark.parametrize("lead", [0, 1])
def test_a_message_that_drips_is_not_copied_with_each_drop(lead: int) -> None:
    scratch = Counted(512 * 1024)
    decoder, message = Decoder(scratch, 1 << 20, lead), bytes(250_000)
    wire = (add_lead if lead else Batch.keep)(from_payloads([message]))
    found, start = None, 0
    while start < len(wire):
        window = decoder.buffer()
        size = min(len(window), len(wire) - start, 200_000 if not start else 1)
        window[:size] = wire[start : start + size]
        start, found = start + size, decoder.feed(size)
    assert found is not None
    assert payloads(found) == [message]
    assert scratch.copied < 2 * len(wire)


@pytest.mark.parametrize("run", [1, 15, 16, 17, 40, 127, 129, 255, 256, 257, 4096])
@pytest.mark.parametrize("lead", [0, 1])
def test_no_mix_of_sizes_makes_the_scan_look_at_more_than_there_is(run: int, lead: int) -> None:
    sizes = [number // run % 2 for number in range(20_000)]
    batch = from_payloads([bytes(size) for size in sizes])
    data = Counted(add_lead(batch) if lead else batch.keep())
    assert scan(data, len(data), lead) == (len(sizes), len(data))
    assert data.copied < 2 * len(data)


def test_no_more_messages_are_counted_than_were_asked_for() -> None:
    data = from_payloads([bytes(size) for size in range(5)]).keep()
    assert [walk(data, 0, len(data), limit) for limit in (0, 3, 5, 6)] == [(0, 0), (3, 27), (5, 50), (5, 50)]


@pytest.mark.parametrize("messages", [[], [b"one", b""], [b"one"] * 300])
def test_a_length_that_is_not_whole_yet_is_not_read(messages: list[bytes]) -> None:
    data = add_lead(from_payloads(messages))
    for rest in range(9):
        assert scan(data + bytes(rest), len(data) + rest, 1) == (len(messages), len(data))


@pytest.mark.parametrize("come", [8, 9])
def test_a_lower_limit_lets_a_message_end_of_which_only_the_length_has_come(come: int) -> None:
    decoder, wire = Decoder(bytearray(4096), 3000), from_payloads([bytes(1000)]).keep()
    assert put(decoder, wire[:come]) == 0
    decoder.revise(500)
    assert put(decoder, wire[come:]) == 1
    assert decoder.fault is None


@given(bodies, st.sampled_from([0, 1]))
def test_what_was_sent_is_divided_into_its_messages(messages: list[bytes], lead: int) -> None:
    batch = from_payloads(messages)
    wire = add_lead(batch) if lead else batch.keep()
    ends = list(itertools.accumulate(lead + 8 + len(message) for message in messages))
    assert list(divide(wire, lead)) == list(zip(ends, messages, strict=True))
    if not lead:
        assert list(divide(wire)) == list(divide(wire, 0))


@pytest.mark.parametrize("lead", [0, 1])
@pytest.mark.parametrize("message_bytes", [0, 5, 4087, 4088, 10_000])
def test_no_more_is_read_at_once_than_the_longest_message(message_bytes: int, lead: int) -> None:
    longest = min(4096, message_bytes + 8 + lead)
    decoder = Decoder(bytearray(4096), message_bytes, lead)
    assert len(decoder.buffer()) == longest
    other = Decoder(bytearray(4096), 77, lead)
    other.revise(message_bytes)
    assert len(other.buffer()) == longest


@pytest.mark.parametrize("lead", [b"", LEAD_IPC])
def test_what_waits_is_what_has_come_of_a_message_that_is_not_whole(lead: bytes) -> None:
    decoder = Decoder(bytearray(4096), 5000, len(lead))
    wire, waiting = lead + (4000).to_bytes(8, "big") + bytes(4000), 0
    whole = lead + (1).to_bytes(8, "big") + b"x"
    assert put(decoder, whole + wire[:5]) == 1
    assert decoder.waiting == 5
    for start in range(5, 1000, 199):
        assert put(decoder, wire[start : start + 199]) == 0
        waiting = start + 199
    assert decoder.waiting >= waiting
    assert put(decoder, wire[waiting:]) == 1
    assert decoder.waiting == 0


def put(decoder: Decoder, data: bytes) -> int:
    """Give a decoder what fits into its window at once; return how many messages are whole then."""
    decoder.buffer()[: len(data)] = data
    found = decoder.feed(len(data))
    return found.count if found else 0


@pytest.mark.parametrize(("size", "fits"), [(100, True), (101, False)])
def test_a_message_may_be_announced_that_is_just_as_long_as_allowed(size: int, fits: bool) -> None:
    decoder = Decoder(bytearray(4096), 100)
    assert put(decoder, size.to_bytes(8, "big")) == 0
    assert (decoder.fault is None) == fits


def test_the_buffer_of_a_link_has_half_a_mebibyte() -> None:
    assert SCRATCH_BYTES == 524_288
