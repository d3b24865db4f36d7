"""From the ring to rows: every message comes back byte for byte, frame or not."""

import os
from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack
from capture.reader import message_of
from capture.schema import Kind, Verdict, arrow_schema
from devices.tap.ring import HEADER_BYTES, RecordPlace, Ring
from devices.tap.rows import Rows

_SHOWN = "ts_ns", "message_bytes"
PLACE = RecordPlace("bus plant", "bus plant", "peer", 0)
u32 = st.integers(0, 0xFFFFFFFF)
frames = st.builds(
    pack, st.integers(0, 255), st.lists(u32, max_size=5), st.binary(max_size=20) | st.just(bytes(2048))
)
messages = (
    frames
    | st.builds(
        wrap,
        frames | st.binary(max_size=30),
        st.builds(Envelope, u32, u32, st.integers(0, 15), st.sampled_from([0, 8])),
    )
    | st.binary(max_size=30)
    | st.binary(max_size=20).map(lambda tail: b"\xe1\x08\xf0" + tail)
    | st.binary(max_size=20).map(lambda tail: b"\xe1\x08\xf0\x00" + tail)
)


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring.create(1 << 16)
    yield made
    made.close()


def put(ring: Ring, *batches: list[bytes]) -> None:
    for number, batch in enumerate(batches):
        made = from_payloads(batch)
        assert ring.put(Kind.FRAME, PLACE.encode(), made.count, number, number, made.data)


def test_messages_have_times_of_their_own_where_they_are_told(ring: Ring) -> None:
    """Beside records of which all messages have one time, also where the memory wraps."""
    made, number, expected = Rows(arrow_schema(), 7), 0, list[int]()
    for turn in range(130):
        for kind, count, is_told in ((Kind.FRAME, 3, True), (Kind.FRAME, 2, False), (Kind.WIRE, 5, True)):
            batch = from_payloads(pack(1, [turn], bytes(n)) for n in range(count))
            times_ns = [10_000 * turn + n for n in range(count)] if is_told else [turn] * count
            told = array("Q", times_ns).tobytes() if is_told else b""
            assert ring.put(kind, PLACE.encode(), count, turn, number, batch.data, told)
            expected, number = expected + times_ns, number + 1
        batches = [one.batch for one in made.of(list(ring.records(ring.head)))]
        ring.release()
        times, sizes = ([one for made in batches for one in made[name].to_pylist()] for name in _SHOWN)
        assert times == expected[-10:]
        assert set(sizes) == {8 + n for n in range(5)}


@given(st.lists(st.lists(messages, min_size=1, max_size=40), min_size=1, max_size=3), st.integers(1, 40))
def test_every_message_comes_back(batches: list[list[bytes]], repeats: int) -> None:
    ring = Ring.create(1 << 23)
    batches = [batch + batch[-1:] * repeats for batch in batches]
    put(ring, *batches)
    made = Rows(arrow_schema(), 7).of(list(ring.records(ring.head)))
    rows = [row for one in made for row in one.batch.to_pylist()]
    del made
    assert [message_of(row) for row in rows] == [message for batch in batches for message in batch]
    assert [row["cap_seq"] for row in rows] == list(range(len(rows)))
    assert [row["message_bytes"] for row in rows] == [len(m) for batch in batches for m in batch]
    parts = [take_apart(message) for batch in batches for message in batch]
    assert [row["type"] is not None for row in rows] == [one.is_frame for one in parts]
    stamps = [
        one.envelope and (one.envelope.origin, one.envelope.sequence, one.envelope.hops) for one in parts
    ]
    found = [(row["origin"], row["seq"], row["hops"]) for row in rows]
    assert found == [stamp or (None, None, None) for stamp in stamps]
    assert {row["ts_ns"] for row in rows} == set(range(len(batches)))
    ring.close()


def test_the_columns_of_a_frame_and_its_envelope(ring: Ring) -> None:
    put(ring, [wrap(pack(1, (5, 0xFFFFFFFF), b"data"), Envelope(0xA1B2C3D4, 0xFFFFFFFE, 3))])
    (made,) = Rows(arrow_schema(), 7, cap_seq=40).of(list(ring.records(ring.head)))
    (row,) = made.batch.to_pylist()
    assert row == {
        "ts_ns": 0, "boot": 7, "cap_seq": 40, "kind": 0, "hub": "bus plant", "bus": "bus plant",
        "peer": "peer", "dir": 0, "count": 1, "verdict": 0, "reason": None, "message_bytes": 28,
        "origin": 0xA1B2C3D4, "seq": 0xFFFFFFFE, "hops": 3, "type": 1, "tokens": [5, 0xFFFFFFFF],
        "payload": b"data",
    }  # fmt: skip


def test_the_columns_of_an_opaque_message_and_its_envelope(ring: Ring) -> None:
    put(ring, [wrap(b"hello", Envelope(0xA1B2C3D4, 8, 3)), b"hello", wrap(b"", Envelope(1, 2))])
    (made,) = Rows(arrow_schema(), 7).of(list(ring.records(ring.head)))
    columns = "message_bytes", "origin", "seq", "hops", "type", "tokens", "payload"
    assert [tuple(row[name] for name in columns) for row in made.batch.to_pylist()] == [
        (17, 0xA1B2C3D4, 8, 3, None, None, b"hello"),
        (5, None, None, None, None, None, b"hello"),
        (12, 1, 2, 8, None, None, b""),
    ]


def test_a_gap_leaves_a_hole_as_wide(ring: Ring) -> None:
    put(ring, [b"a", b"b"])
    ring.put(Kind.GAP, RecordPlace("", "", "", 0).encode(), 5, 9, 1, b"")
    made = Rows(arrow_schema(), 7).of(list(ring.records(ring.head)))
    assert [one.next_number for one in made] == [1, 2]
    gap = made[1].batch.to_pylist()[0]
    assert (gap["cap_seq"], gap["count"], gap["verdict"]) == (7, 5, Verdict.NOT_CAPTURED)


@given(st.lists(messages, min_size=1, max_size=20), st.lists(u32, min_size=1, max_size=2))
def test_only_frames_of_the_pattern_are_numbered(noise: list[bytes], pattern: list[int]) -> None:
    ring = Ring.create(1 << 20)
    wanted = [pack(1, [*pattern, 3], b"x"), wrap(pack(1, pattern), Envelope(1, 2))]
    put(ring, [*(message for message in noise if len(message) < 64), *wanted])
    made = Rows(arrow_schema(), 7, pattern=pattern).of(list(ring.records(ring.head)))
    rows = [row for one in made for row in one.batch.to_pylist()]
    assert [message_of(row) for row in rows][-2:] == wanted
    assert all(row["tokens"][: len(pattern)] == pattern for row in rows)
    assert [row["cap_seq"] for row in rows] == list(range(len(rows)))
    ring.close()


def test_the_ring_refuses_what_does_not_fit_and_goes_round(ring: Ring) -> None:
    reader = Ring(os.dup(ring.descriptor), ring.size_bytes)
    taken = put_count = 0
    for size in (1000, 20_000, 65_000, 3, 0, 40_000) * 50:
        data = bytes([put_count & 255]) * size
        if ring.put(Kind.FRAME, b"p", 1, 0, put_count, data):
            put_count += 1
            continue
        assert ring.waiting_bytes + 2 * (size + HEADER_BYTES + 16) > ring.size_bytes
        for record in reader.records(reader.written()):
            assert (record.number, set(record.data)) == (taken, {taken & 255} if record.data else set())
            taken += 1
            del record
        reader.release()
    assert put_count > 100
    assert ring.waiting_bytes <= ring.size_bytes
    reader.close()


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize(
    ("kind", "place", "data"),
    [
        (Kind.EVENT, PLACE, b"no JSON"),
        (Kind.EVENT, PLACE, b'[["", "", 0, "\\udcff", 1]]'),
        (Kind.LEDGER, PLACE, b'[["", ""]]'),
        (Kind.FRAME, RecordPlace("\udcff", "", "", 0), from_payloads([b"one"]).data),
        (Kind.FRAME, PLACE._replace(dir=1 << 40), from_payloads([b"one"]).data),
        (Kind.WIRE, PLACE._replace(reason="\udcff"), from_payloads([b"one"]).data),
    ],
    ids=["no JSON", "no text", "few columns", "no name", "no direction", "no items"],
)
def test_a_record_without_rows_is_a_gap_and_stops_none_of_the_others(
    ring: Ring, at: int, kind: Kind, place: RecordPlace, data: bytes
) -> None:
    for number in range(4):
        some = from_payloads([b"good"] * 2)
        one = (kind, place.encode(), 1) if number == at else (Kind.FRAME, PLACE.encode(), 2)
        assert ring.put(*one, number, number, data if number == at else some.data)
    rows = [
        row for made in Rows(arrow_schema(), 7).of(list(ring.records(ring.head)))
        for row in made.batch.to_pylist()
    ]  # fmt: skip
    assert [row["payload"] for row in rows].count(b"good") == 6
    (gap,) = [row for row in rows if row["kind"] != Kind.FRAME]
    assert (gap["kind"], gap["reason"], gap["count"]) == (Kind.GAP, "not captured", 1)
    assert [row["cap_seq"] for row in rows] == [n + (n >= 2 * at) for n in range(7)]
