"""The ring: what is put in comes out, and memory is spent only where records are."""

import os
import random
import subprocess
import sys
from collections import deque

import pytest

from devices.tap.ring import RING_BYTES, Record, RecordPlace, Ring, longest_bytes
from tests.helpers import ROOT

PLACE = RecordPlace("bus plant", "bus plant", "peer", 0).encode()
MIB = 1 << 20


def spent_bytes(ring: Ring) -> int:
    """Return the memory that the ring's pages take."""
    return os.fstat(ring.descriptor).st_blocks * 512


def test_a_ring_that_nothing_was_put_into_takes_no_memory() -> None:
    ring = Ring.create()
    assert ring.size_bytes == RING_BYTES
    assert spent_bytes(ring) < MIB // 16
    ring.close()


@pytest.mark.parametrize(("give_back", "least", "most"), [(True, 0, 8), (False, 15, 17)])
def test_pages_are_given_back_if_asked(give_back: bool, least: float, most: float) -> None:
    ring = Ring.create(16 * MIB)
    for number in range(4000):  # two laps and a half
        assert ring.put(0, PLACE, 1, 0, number, bytes(10_000))
        if number % 100 == 99:  # a megabyte
            assert len(list(ring.records(ring.head))) == 100
            ring.release(give_back=give_back)
    assert least <= spent_bytes(ring) / MIB <= most
    ring.close()


def content(record: Record) -> tuple[int, bytes]:
    return record.number, bytes(record.data)


@pytest.mark.parametrize("seed", range(5))
def test_every_record_comes_out_whole_however_full_the_ring_is(seed: int) -> None:
    """Fill and empty a ring by random amounts, also up to the last page before the tail."""
    chance, ring, waiting = random.Random(seed), Ring.create(MIB), deque[tuple[int, bytes]]()
    for number in range(20_000):
        kind, data = chance.choice((0, 1)), chance.randbytes(chance.choice((0, 7, 300, 5000)))
        if ring.put(kind, PLACE, 1, 0, number, data):
            waiting.append((number, data))
        elif chance.random() < 0.05:
            records = ring.records(ring.head)
            taken = [next(records) for _ in range(chance.randint(1, len(waiting)))]
            assert [content(record) for record in taken] == [waiting.popleft() for _ in taken]
            ring.release(give_back=chance.random() < 0.8)
    assert [content(record) for record in ring.records(ring.head)] == list(waiting)


@pytest.mark.parametrize("size_bytes", [300_000, 500_000, 600_000, 900_000])
def test_an_empty_ring_has_room_for_a_large_record_wherever_it_stands(size_bytes: int) -> None:
    ring, number = Ring.create(MIB), 0
    for stands in range(0, MIB, 50_000):
        while ring.head % MIB < stands:
            assert ring.put(1, PLACE, 1, 0, number, bytes(10_000))
            list(ring.records(ring.head))
            ring.release()
        assert any([put_and_taken(ring, size_bytes), put_and_taken(ring, size_bytes)])
    ring.close()


def put_and_taken(ring: Ring, size_bytes: int) -> bool:
    has_room = ring.put(0, PLACE, 1, 0, 0, bytes(size_bytes))
    assert len(list(ring.records(ring.head))) == has_room
    ring.release()
    return has_room


def test_a_small_ring_gives_nothing_back() -> None:
    ring = Ring.create(8192)
    assert ring.put(0, PLACE, 1, 0, 0, bytes(4000))
    assert len(list(ring.records(ring.head))) == 1
    ring.release(give_back=True)
    assert ring.waiting_bytes == 0
    ring.close()


def test_the_writer_does_not_load_pandas() -> None:
    pytest.importorskip("pandas")
    code = (
        "import sys, numpy, pyarrow; from devices.child import hide_pandas;"
        "hide_pandas();"
        "pyarrow.array(numpy.arange(3), mask=numpy.arange(3) > 1); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("size_bytes", [1 << 16, 1 << 20, 8 << 20])
def test_the_longest_message_has_room_in_an_empty_ring_and_a_longer_one_has_not(size_bytes: int) -> None:
    ring = Ring.create(size_bytes)
    most = longest_bytes(size_bytes)
    assert (ring.has_room(most), ring.has_room(most + 1)) == (True, False)
    ring.close()
