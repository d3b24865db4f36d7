"""Records: cutting, encoding, decoding, and finding the next one after damage."""

from random import Random

import pytest

from bus.journal.errors import RecordError
from bus.journal.ranges import U64_MAX
from bus.journal.record import (
    BODY_BYTES,
    HEAD_BYTES,
    LONGEST_BYTES,
    Record,
    cut,
    decode,
    encode,
    find,
    measure,
    part,
    peek,
    without_ends,
)
from bus.wire.batch import Batch, from_payloads, payloads
from tests.bus.journal.support import numbered


def joined(records: list[Record]) -> bytes:
    return b"".join(record.encoded for record in records)


def bodies_of(record: Record) -> list[bytes]:
    return payloads(Batch(record.messages, record.count))


SIZES = {
    "equal": [64] * 1000,
    "small": [0] * 3000,
    "mixed": [Random(3).randrange(200) for _ in range(500)],
    "runs": [8] * 40 + [900] * 30 + [3] * 17 + [5000] + [1] * 16,
    "long": [100_000, 5, 4089, 4088, 4087],
    "one": [64],
    "none": [],
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(("origin", "ends"), [(None, None), ((9, 50), None), (None, 5), ((9, 50), 0)])
def test_a_batch_comes_back_from_its_records(
    name: str, origin: tuple[int, int] | None, ends: int | None
) -> None:
    bodies = [bytes([number % 256]) * size for number, size in enumerate(SIZES[name])]
    made = encode(from_payloads(bodies).data, 10, 77, origin, ends)
    data, at, found = joined(made), 0, list[bytes]()
    while at < len(data):
        record = decode(data, at)
        assert record.number == 10 + len(found)
        assert record.origin == (origin and (9, 50 + len(found)))
        assert (record.time_ms, record.ends) == (77, ends)
        assert record.count == 1 or len(record.messages) <= BODY_BYTES
        found += bodies_of(record)
        at += measure(data, at)
    assert found == bodies
    fewest = sum(size + 8 for size in SIZES[name]) / BODY_BYTES
    assert len(made) <= 2 * fewest + 8


def test_the_bytes_of_a_record_are_those_of_the_page() -> None:
    (record,) = encode(from_payloads([b"hi"]).data, 5, 6, (7, 8))
    assert record.encoded.hex(" ", -4) == (
        "bc010001 0000001a 0f6b5384 00000000 00000005 00000000 00000006 00000000 00000007 "
        "00000000 00000008 00000000 00000002 6869"
    ).replace("0f6b5384", record.encoded[8:12].hex())
    from zlib import crc32

    assert record.encoded[8:12] == crc32(record.encoded[:8] + record.encoded[12:]).to_bytes(4)


def test_every_flipped_bit_is_seen() -> None:
    (record,) = encode(from_payloads([b"one", b"two"]).data, 5, 6, (7, 8), 3)
    for at in range(len(record.encoded)):
        for bit in range(8):
            data = bytearray(record.encoded)
            data[at] ^= 1 << bit
            with pytest.raises(RecordError):
                decode(bytes(data))


def test_a_record_that_is_cut_off_is_none() -> None:
    (record,) = encode(from_payloads([b"one", b"two"]).data, 5, 6)
    for size in range(len(record.encoded)):
        with pytest.raises(RecordError, match="not whole"):
            decode(record.encoded[:size])


def crafted(record: Record, **changes: int) -> bytes:
    """Return a record with a right checksum and fields that are wrong."""
    from zlib import crc32

    from bus.journal.record import HEAD

    names = ("magic", "flags", "count", "length", "crc", "number", "time_ms")
    values = dict(zip(names, HEAD.unpack_from(record.encoded), strict=True)) | changes
    head = HEAD.pack(*values.values())
    rest = head[12:] + record.encoded[HEAD_BYTES:]
    return head[:8] + crc32(rest, crc32(head[:8])).to_bytes(4) + rest


@pytest.mark.parametrize(
    "changes",
    [
        {"magic": 0xBB},
        {"flags": 4},
        {"count": 0},
        {"count": 1},
        {"count": 3},
        {"number": 0},
        {"number": U64_MAX},
        {"length": 15},
        {"flags": 1},
    ],
    ids=str,
)
def test_a_record_that_contradicts_itself_is_none(changes: dict[str, int]) -> None:
    (record,) = encode(from_payloads([b"one", b"two"]).data, 5, 6)
    assert decode(crafted(record)) == record
    with pytest.raises(RecordError):
        decode(crafted(record, **changes))


def test_the_last_message_of_all_may_be_in_a_record() -> None:
    (record,) = encode(from_payloads([b"one", b"two"]).data, 5, 6)
    assert decode(crafted(record, number=U64_MAX - 1)).last == U64_MAX


@pytest.mark.parametrize(
    "data", [b"\0" * 7, b"\0" * 7 + b"\5abc", b"\xff" * 8, from_payloads([b"abc"]).keep() + b"\0"]
)
def test_data_that_are_no_messages_are_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        list(cut(data))


@pytest.mark.parametrize("equal", [True, False])
def test_a_part_of_a_record_is_one(equal: bool) -> None:
    bodies = numbered(20) if equal else [bytes(number) for number in range(20)]
    (record,) = encode(from_payloads(bodies).data, 100, 6, (7, 8), 1)
    some = part(record, 105, 500)
    assert (some.number, some.count, some.origin, some.ends) == (105, 15, (7, 13), 1)
    assert bodies_of(decode(some.encoded)) == list(bodies[5:])
    assert bodies_of(part(record, 1, 103)) == list(bodies[:4])
    assert part(record, 1, 119) is record


def test_ends_do_not_go_over_a_wire() -> None:
    (record,) = encode(from_payloads([b"a"]).data, 100, 6, (7, 8), 1)
    assert without_ends(record) == encode(from_payloads([b"a"]).data, 100, 6, (7, 8))[0]
    assert without_ends(without_ends(record)).ends is None


def test_the_next_record_after_damage_is_found() -> None:
    first, second, third = (encode(from_payloads([b"x" * 50]).data, number, 1)[0] for number in (1, 2, 9))
    data = b"\xbc" + first.encoded[:-1] + b"\xbc\xbc" + second.encoded + third.encoded
    place = len(first.encoded) + 2
    assert find(data, 0, 1, U64_MAX) == place
    assert find(data, 0, 3, U64_MAX) == place + len(second.encoded)
    assert find(data, 0, 3, 8) == len(data)
    assert peek(data, place) == second


def long_heads(size: int, behind: int = 0) -> bytes:
    """Return what looks like the heads of long records, each of which goes on to the end of all data."""
    data = bytearray(size // 36 * 36)
    for at in range(0, len(data) - 36, 36):
        left = len(data) + behind - at - HEAD_BYTES
        data[at : at + 8] = b"\xbc\0\0\1" + left.to_bytes(4)
        data[at + 28 : at + 36] = (left - 8).to_bytes(8)
    return bytes(data)


def test_behind_much_that_only_looks_like_long_records_the_longest_of_several_messages_is_found() -> None:
    (record,) = encode(from_payloads([bytes(56)] * 64).data, 5, 6, (7, 8), 1)
    assert (len(record.encoded), record.count) == (LONGEST_BYTES, 64)
    heads = long_heads(36_000, LONGEST_BYTES)
    assert find(heads + record.encoded, 0, 1, U64_MAX) == len(heads)
    (long,) = encode(from_payloads([bytes(BODY_BYTES)]).data, 5, 6, (7, 8), 1)
    heads = long_heads(36_000, len(long.encoded))
    assert find(heads + long.encoded, 0, 1, U64_MAX) == len(heads) + len(long.encoded)


@pytest.mark.parametrize("long", [False, True])
def test_to_find_records_costs_no_more_than_twice_for_twice_the_data(
    long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0

    def counted(data: bytes, at: int = 0) -> Record:
        nonlocal looked
        looked += measure(data, at)
        raise RecordError("not this one")

    monkeypatch.setattr("bus.journal.record.decode", counted)

    def work(size: int) -> int:
        nonlocal looked
        looked, head = 0, bytes.fromhex("bc000002 00000200") + bytes(28)
        data = long_heads(size) if long else head * (size // len(head))
        assert find(data, 0, 1, U64_MAX) == len(data)
        return looked

    assert 0 < work(72_000) < 2.5 * work(36_000)
