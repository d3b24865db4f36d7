"""The WebSocket decoder: any split gives the same messages, and no bytes do harm."""

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.wire.batch import from_payloads, payloads
from bus.wire.websocket.decoder import LARGE_BYTES, Decoder
from bus.wire.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    FIN,
    MASKED,
    PING,
    PONG,
    apply_mask,
    control,
    encode,
    head,
)

SCRATCH = 64 * 1024


class Heard(NamedTuple):
    """What a decoder made of some bytes."""

    messages: list[bytes]
    answers: bytes
    decoder: Decoder


def keys(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def decode(wire: bytes, cuts: list[int], masked: bool = True, message_bytes: int = 100_000) -> Heard:
    """Decode `wire`, read in pieces that end at `cuts`."""
    decoder = Decoder(bytearray(SCRATCH), message_bytes, None if masked else keys)
    messages, answers = list[bytes](), b""
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        piece = wire[start:end]
        while piece and not decoder.fault and not decoder.ended:
            window = decoder.buffer()
            size = min(len(window), len(piece))
            assert size
            window[:size], piece = piece[:size], piece[size:]
            batch = decoder.feed(size)
            messages += payloads(batch) if batch else []
            answers += decoder.answer()
    return Heard(messages, answers, decoder)


def frame(first: int, payload: bytes, masked: bool = True) -> bytes:
    key = keys(4)
    return (
        head(len(payload), first, MASKED) + key + apply_mask(payload, key)
        if masked
        else head(len(payload), first) + payload
    )


def cuts_of(wire: bytes, places: list[float]) -> list[int]:
    return sorted(int(place * len(wire)) for place in places)


PLACES = st.lists(st.floats(0, 1), max_size=8)
SIZES = st.lists(st.sampled_from((0, 1, 5, 125, 126, 300, 20_000, 70_000)), max_size=30)


@given(SIZES, PLACES, st.booleans())
def test_any_split_gives_the_same_messages(sizes: list[int], places: list[float], masked: bool) -> None:
    bodies = [random.Random(size + number).randbytes(size) for number, size in enumerate(sizes)]
    wire = encode(from_payloads(bodies), keys if masked else None)
    heard = decode(wire, cuts_of(wire, places), masked)
    assert (heard.messages, heard.answers, heard.decoder.fault) == (bodies, b"", None)


@given(st.lists(st.tuples(st.sampled_from((0, 1, 130)), st.integers(1, 400)), max_size=5), st.booleans())
def test_runs_of_one_size_are_cut_where_they_end(runs: list[tuple[int, int]], masked: bool) -> None:
    bodies = [bytes([number]) * size for number, (size, count) in enumerate(runs) for _ in range(count)]
    wire = encode(from_payloads(bodies), keys if masked else None)
    assert decode(wire, [], masked).messages == bodies


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=6), PLACES, st.booleans())
def test_fragments_and_control_frames_between_them(
    pieces: list[bytes], places: list[float], masked: bool
) -> None:
    wire = frame(FIN | BINARY, b"before", masked)
    for number, piece in enumerate(pieces):
        last = FIN if number == len(pieces) - 1 else 0
        wire += frame(last | (CONTINUATION if number else BINARY), piece, masked)
        wire += frame(FIN | PING, b"%d" % number, masked) + frame(FIN | PONG, b"", masked)
    wire += frame(FIN | BINARY, b"after", masked)
    heard = decode(wire, cuts_of(wire, places), masked)
    assert heard.messages == [b"before", b"".join(pieces), b"after"]
    assert heard.answers.endswith(control(PONG, b"%d" % (len(pieces) - 1), None if masked else keys))


def test_of_many_pings_in_one_read_the_last_is_answered() -> None:
    wire = b"".join(frame(FIN | PING, b"%d" % number) for number in range(100))
    assert decode(wire, []).answers == control(PONG, b"99")


def test_a_peer_that_takes_its_leave_is_answered_and_no_fault() -> None:
    wire = frame(FIN | BINARY, b"last") + frame(FIN | CLOSE, b"\x03\xe8bye") + frame(FIN | BINARY, b"late")
    heard = decode(wire, [])
    assert (heard.messages, heard.answers) == ([b"last"], control(CLOSE, b"\x03\xe8"))
    assert heard.decoder.ended
    assert heard.decoder.fault is None


WRONG: dict[str, tuple[bytes, str, int]] = {
    "text": (frame(FIN | 1, b"hello"), "a text message", 1003),
    "reserved bit": (frame(FIN | 0x40 | BINARY, b"x"), "reserved bits", 1002),
    "reserved opcode": (frame(FIN | 3, b"x"), "opcode 3", 1002),
    "no mask": (frame(FIN | BINARY, b"x", masked=False), "without a mask", 1002),
    "long control": (frame(FIN | PING, bytes(126)), "control frame", 1002),
    "control in fragments": (frame(PING, b"x"), "control frame", 1002),
    "fragment of nothing": (frame(FIN | CONTINUATION, b"x"), "fragment of no message", 1002),
    "message in a message": (frame(BINARY, b"x") + frame(FIN | BINARY, b"y"), "within another", 1002),
    "too long": (frame(FIN | BINARY, bytes(100_001)), "100001 bytes", 1009),
    "announced too long": (head(1 << 62, mask=MASKED) + keys(4), "at most 100000", 1009),
    "top bit": (b"\x82\xff" + b"\xff" * 8 + keys(4), "at most 100000", 1009),
    "too long in fragments": (
        frame(BINARY, bytes(60_000)) + frame(CONTINUATION, bytes(40_001)),
        "100001 bytes",
        1009,
    ),
}


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("wire", "words", "code"), WRONG.values(), ids=WRONG)
def test_what_breaks_the_protocol_is_a_fault_after_what_was_right(
    wire: bytes, words: str, code: int, cut: bool
) -> None:
    good = frame(FIN | BINARY, b"good") * 20
    heard = decode(good + wire, list(range(len(good), len(good) + min(len(wire), 40))) if cut else [])
    assert heard.messages == [b"good"] * 20
    assert heard.decoder.fault is not None
    assert words in heard.decoder.fault
    assert heard.answers == control(CLOSE, code.to_bytes(2, "big"))


def test_a_dialer_takes_no_masked_frames() -> None:
    assert "with a mask" in str(decode(frame(FIN | BINARY, b"x"), [], masked=False).decoder.fault)


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5), st.booleans())
def test_no_bytes_raise(wire: bytes, cuts: list[int], masked: bool) -> None:
    decode(wire, sorted(min(cut, len(wire)) for cut in cuts), masked, message_bytes=500)


def test_what_is_only_announced_takes_no_memory() -> None:
    decoder = Decoder(bytearray(SCRATCH), 1 << 40)
    announced = head(1 << 39, mask=MASKED) + keys(4)
    decoder.buffer()[: len(announced)] = announced
    assert decoder.feed(len(announced)) is None
    assert len(decoder.buffer()) <= SCRATCH


def test_a_long_message_that_drips_in_is_not_copied_at_each_read() -> None:
    """The window that it lends is the message's own memory: nothing is put into the scratch buffer."""
    scratch = bytearray(SCRATCH)
    decoder, wire = Decoder(scratch, 100_000), frame(FIN | BINARY, bytes(LARGE_BYTES))
    decoder.buffer()[:100] = wire[:100]
    decoder.feed(100)
    scratch[:] = b"\xff" * SCRATCH
    for byte in wire[100:]:
        decoder.buffer()[:1] = bytes([byte])
        batch = decoder.feed(1)
    assert batch is not None
    assert payloads(batch) == [bytes(LARGE_BYTES)]
    assert scratch == b"\xff" * SCRATCH


@pytest.mark.parametrize("size", [10, 8000, 20_000])
@pytest.mark.parametrize("fragments", [False, True])
def test_other_bounds_apply_from_the_next_message_on(size: int, fragments: bool) -> None:
    decoder = Decoder(bytearray(SCRATCH), 50_000)

    def feed(wire: bytes) -> list[bytes]:
        found = list[bytes]()
        while wire:
            window = decoder.buffer()
            part = min(len(window), len(wire))
            window[:part], wire = wire[:part], wire[part:]
            batch = decoder.feed(part)
            found += payloads(batch) if batch else []
        return found

    begun = frame(FIN | BINARY, bytes(size))
    if fragments:
        begun = frame(BINARY, bytes(size - 5)) + frame(FIN | CONTINUATION, bytes(5))
    assert feed(begun[:-3]) == []
    decoder.revise(4)
    assert feed(begun[-3:]) == [bytes(size)]
    assert feed(frame(FIN | BINARY, b"four")) == [b"four"]
    assert feed(frame(FIN | BINARY, b"five.")) == []
    assert "at most 4" in str(decoder.fault)


def test_between_two_frames_of_a_message_another_limit_does_not_count_for_it() -> None:
    decoder, found = Decoder(bytearray(SCRATCH), 1000), list[bytes]()
    for part in (
        frame(BINARY, bytes(10)),
        frame(FIN | CONTINUATION, bytes(5)),
        frame(FIN | BINARY, b"five."),
    ):
        decoder.buffer()[: len(part)] = part
        batch = decoder.feed(len(part))
        found += payloads(batch) if batch else []
        decoder.revise(4)
    assert found == [bytes(15)]
    assert "at most 4" in str(decoder.fault)


def test_a_peer_of_control_frames_gets_small_reads() -> None:
    decoder = Decoder(bytearray(SCRATCH), 1000)
    for size in (0, 125):
        ping = frame(FIN | PING, bytes(size))
        for _ in range(20):
            pings = ping * (len(decoder.buffer()) // len(ping))
            decoder.buffer()[: len(pings)] = pings
            decoder.feed(len(pings))
            assert 0 < decoder.odd <= 2048 // len(frame(FIN | PING, b""))
        assert len(decoder.buffer()) <= 130 * len(ping)
    one = frame(FIN | BINARY, b"x")
    decoder.buffer()[: len(one)] = one
    decoder.feed(len(one))
    assert decoder.odd == 0
    assert len(decoder.buffer()) == SCRATCH
