"""The writer, its journals and capture files, in this process: days, full disks, torn journals."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.wire.batch import from_payloads
from capture.batches import batches_of
from capture.schema import Kind
from devices.tap.finish import finish
from devices.tap.journal import leftovers
from devices.tap.names import NamesWriter
from devices.tap.ring import RecordPlace, Ring
from devices.tap.writer import Settings, Writer
from tests.devices.tap.tap_support import files_in, numbered, rows_in

DAY_NS = 86_400 * 10**9


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring.create(1 << 20)
    yield made
    made.close()


def writer(ring: Ring, root: Path, **options: Any) -> Writer:
    """Make a writer in this process, which works only when the test calls it."""
    own = os.dup(ring.descriptor)
    shared = {"descriptor": own, "ring_bytes": ring.size_bytes, "names": NamesWriter().descriptor}
    settings = {"flush_s": 0.0, **shared, **options}
    made = Writer(Settings("gw", "recorder", str(root), boot=7, **settings))
    assert made.resume()
    return made


def put(ring: Ring, number: int, ts_ns: int, messages: list[bytes]) -> None:
    batch = from_payloads(messages)
    assert ring.put(
        Kind.FRAME, RecordPlace("bus p", "bus p", "a", 0).encode(), batch.count, ts_ns, number, batch.data
    )


def take(made: Writer, ring: Ring) -> None:
    made.head = ring.head
    made.take()


def finish_all(made: Writer, root: Path) -> None:
    made.rotate()
    for path in leftovers(root, "gw"):
        finish(root, path)


def test_a_row_is_in_its_own_day_s_directory(ring: Ring, tmp_path: Path) -> None:
    made = writer(ring, tmp_path)
    put(ring, 0, DAY_NS - 1, numbered(0, 3))
    put(ring, 1, DAY_NS, numbered(3, 2))
    put(ring, 2, DAY_NS - 5, numbered(5, 1))  # the clock was set back
    take(made, ring)
    finish_all(made, tmp_path)
    days = [(path.parent.parent.name, path.name[-23:-8]) for path in files_in(tmp_path)]
    assert days == [
        ("date=1970-01-01", "0" * 15),
        ("date=1970-01-02", "0" * 14 + "3"),
        ("date=1970-01-01", "0" * 14 + "5"),
    ]
    assert [row["payload"] for row in rows_in(tmp_path)] == numbered(0, 6)


def test_a_writer_that_is_killed_after_midnight_doubles_nothing_of_the_day_before(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, fsync, synced = writer(ring, tmp_path), os.fsync, list[int]()

    def kill(file: int) -> None:
        fsync(file)
        synced.append(file)
        if len(synced) == 2:  # of the second day; that the first is in a file, nobody has released
            raise SystemExit

    put(ring, 0, DAY_NS - 1, numbered(0, 3))
    take(made, ring)
    put(ring, 1, DAY_NS - 1, numbered(3, 3))
    put(ring, 2, DAY_NS, numbered(6, 3))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", kill)
        with pytest.raises(SystemExit):
            take(made, ring)
    for path in leftovers(tmp_path, "gw")[:-1]:
        assert finish(tmp_path, path)
    leftovers(tmp_path, "gw")[-1].write_bytes(b"")  # what was synced last is not there yet
    assert made.journal is not None
    made.journal.close()
    after = writer(ring, tmp_path)
    put(ring, 3, DAY_NS, numbered(9, 1))
    take(after, ring)
    finish_all(after, tmp_path)
    assert [row["payload"] for row in rows_in(tmp_path)] == numbered(0, 10)


def test_a_disk_that_fills_up_in_the_middle_of_a_write_costs_nothing(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, pwrite = writer(ring, tmp_path), os.pwrite
    refused: list[int] = []
    faults: list[str] = []

    def full(file: int, data: bytes, offset: int) -> int:
        if offset and len(refused) < 6:
            refused.append(offset)
            if len(refused) % 2:
                return pwrite(file, bytes(data)[:100], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(file, data, offset)

    put(ring, 0, 5, numbered(0, 10))
    take(made, ring)
    monkeypatch.setattr(os, "pwrite", full)
    (journal,) = leftovers(tmp_path, "gw")
    size_bytes = journal.stat().st_size

    def see(_: float) -> None:
        faults.append(made.fault)
        assert journal.stat().st_size == size_bytes

    monkeypatch.setattr(made, "_listen_on", see)
    put(ring, 1, 6, numbered(10, 10))
    take(made, ring)
    assert len(refused) == 6
    assert faults
    assert all("No space left" in fault for fault in faults)
    assert made.fault == ""
    assert [batch.num_rows for batch, _ in batches_of(journal)] == [10, 10]
    finish_all(made, tmp_path)
    assert [row["payload"] for row in rows_in(tmp_path)] == numbered(0, 20)


def test_a_segment_that_cannot_be_written_leaves_its_journal(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = writer(ring, tmp_path)
    put(ring, 0, 5, numbered(0, 10))
    take(made, ring)
    made.rotate()
    (journal,) = leftovers(tmp_path, "gw")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            finish(tmp_path, journal)
    assert [path for path in (tmp_path / "capture").rglob("*") if path.is_file()] == []
    finish(tmp_path, journal)
    assert [row["payload"] for row in rows_in(tmp_path)] == numbered(0, 10)


@pytest.mark.parametrize("cut", [1, 100, 10_000])
def test_a_journal_torn_anywhere_gives_its_whole_batches(ring: Ring, tmp_path: Path, cut: int) -> None:
    made = writer(ring, tmp_path)
    for number in range(20):
        put(ring, number, 5, numbered(10 * number, 10))
        take(made, ring)
    made.rotate()
    (journal,) = leftovers(tmp_path, "gw")
    os.truncate(journal, journal.stat().st_size - cut)
    finish(tmp_path, journal)
    got = [row["payload"] for row in rows_in(tmp_path)]
    assert got == numbered(0, len(got))
    assert 0 < len(got) < 200


def test_an_empty_journal_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal" / "gateway=gw" / "1-0.arrows"
    path.parent.mkdir(parents=True)
    for content in (b"", b"no arrow"):
        path.write_bytes(content)
        assert finish(tmp_path, path) is None
        assert not path.exists()
