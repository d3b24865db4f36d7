"""The writer, its journals and capture files, in this process: days, full disks, torn journals."""

import errno
import os
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bus.wire.batch import from_payloads
from capture.batches import NEXT, batches_of
from capture.files import JOURNAL_SUFFIX, capture_file, days_directory, name_of
from capture.live import Live, latest, pieces, read
from capture.schema import Kind
from devices.tap.finish import finish
from devices.tap.finish import finish_all as finish_every
from devices.tap.finisher import Finisher
from devices.tap.journal import leftovers, resume
from devices.tap.names import NamesReader, NamesWriter
from devices.tap.retention import Limits
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


def put(ring: Ring, number: int, ts_ns: int, messages: list[bytes], times_ns: Sequence[int] = ()) -> None:
    batch = from_payloads(messages)
    place, times = RecordPlace("bus p", "bus p", "a", 0).encode(), array("Q", times_ns).tobytes()
    assert ring.put(Kind.FRAME, place, batch.count, ts_ns, number, batch.data, times)


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


@pytest.mark.parametrize("told_ns", [DAY_NS - 1, 2 * DAY_NS, 0])
def test_the_times_that_adapters_tell_at_midnight_choose_no_day_for_a_file(
    told_ns: int, ring: Ring, tmp_path: Path
) -> None:
    """They are from before midnight, or from before the clock was set."""
    made = writer(ring, tmp_path)
    put(ring, 0, DAY_NS - 9, numbered(0, 1))
    put(ring, 1, DAY_NS + 1, numbered(1, 2), [told_ns, DAY_NS])
    put(ring, 2, DAY_NS + 10**9, numbered(3, 2))
    take(made, ring)
    days = days_directory(tmp_path)
    look = Live(days)
    of_journals = [*_days_of(look, days)]
    finish_all(made, tmp_path)
    assert [path.parent.parent.name for path in files_in(tmp_path)] == ["date=1970-01-01", "date=1970-01-02"]
    assert of_journals == [*_days_of(look, days)] == ["1970-01-01", *4 * ["1970-01-02"]]


def _days_of(look: Live, days: Path) -> Iterator[str]:
    """Yield the day of each row, in order."""
    held = look.held()
    for piece in pieces({}, latest({}, held, None), held):
        for batch in read(days, piece):
            yield from map(str, batch["date"].to_pylist())


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


def _deleted(root: Path) -> None:
    shutil.rmtree(root)


def _moved(root: Path) -> None:
    root.rename(root.with_name("elsewhere"))


def _replaced(root: Path) -> None:
    shutil.rmtree(root)
    root.touch()


def _copied(root: Path) -> None:
    _moved(root)
    shutil.copytree(root.with_name("elsewhere"), root)


@pytest.mark.parametrize("away", [_deleted, _moved, _replaced, _copied])
def test_a_directory_that_goes_while_it_is_written_is_told_with_its_rows_and_made_anew(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: Callable[[Path], None]
) -> None:
    root, faults = tmp_path / "capture", list[str]()
    made = writer(ring, root)
    put(ring, 0, 5, numbered(0, 10))
    take(made, ring)
    away(root)

    def see(_: float) -> None:
        faults.append(made.fault)
        if root.is_file() and len(faults) > 1:
            root.unlink()

    monkeypatch.setattr(made, "_listen_on", see)
    put(ring, 1, 6, numbered(10, 10))
    take(made, ring)
    assert faults[0].startswith("the journal was deleted or moved away, with 10 rows")
    assert (len(faults), made.fault) == (2 if away is _replaced else 1, "")
    finish_all(made, root)
    copied = numbered(0, 10) if away is _copied else []
    assert [row["payload"] for row in rows_in(root)] == copied + numbered(10, 10)


def test_a_journal_that_is_gone_when_it_is_to_be_a_file_is_told_too(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, faults = tmp_path / "capture", list[str]()
    made = writer(ring, root)
    put(ring, 0, 5, numbered(0, 10))
    take(made, ring)
    _deleted(root)
    monkeypatch.setattr(made, "_tell", lambda now=False: faults.append(made.fault))
    made.rotate()
    assert [fault.partition(":")[0] for fault in faults] == [
        "the journal was deleted or moved away, with 10 rows"
    ]
    assert (made.fault, made.journal) == ("", None)


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


def finisher(root: Path, keep_bytes: int) -> Finisher:
    """Make the thread that finishes and deletes, which works only when the test calls it."""
    names = NamesWriter()
    names.write(["fridge"])
    reader = NamesReader(names.descriptor, days_directory(root), "gw")
    return Finisher(root, "gw", Limits(keep_bytes, 0.0), reader)


@pytest.mark.parametrize("bad", ["names", "journal of others", "journal", "file"])
def test_what_cannot_be_done_for_one_file_is_told_and_done_for_the_others(
    ring: Ring, tmp_path: Path, bad: str
) -> None:
    made = writer(ring, tmp_path, file_bytes=1)
    for number in range(3):
        put(ring, number, 5, numbered(number, 1))
        take(made, ring)
    assert len(leftovers(tmp_path, "gw")) == 3
    subject = {
        "names": tmp_path / "capture" / "_names" / "gw.txt",
        "journal of others": leftovers(tmp_path, "gw")[0].with_name(f"{name_of(3, 0)}{JOURNAL_SUFFIX}"),
        "journal": leftovers(tmp_path, "gw")[0].with_name(f"{name_of(4, 0)}{JOURNAL_SUFFIX}"),
        "file": capture_file(tmp_path, "2026-01-01", "gw", name_of(5, 0)),
    }[bad]
    subject.parent.mkdir(parents=True, exist_ok=True)
    if bad == "names":
        subject.write_bytes(b"\xff\xfe no text")
    elif bad == "journal":  # of rows that know no gateway
        schema = pa.schema([("ts_ns", pa.int64())])
        with pa.ipc.new_stream(str(subject), schema) as stream:
            batch = pa.record_batch([pa.array([1])], schema=schema)
            stream.write_batch(batch, custom_metadata={NEXT: "1"})
    else:
        subject.mkdir()  # nobody can open it or delete it
    done = finisher(tmp_path, keep_bytes=1)
    done.ending = True  # by which it needs no process
    done.work()
    left = [path for path in files_in(tmp_path) if path.is_file()]
    assert str(subject) in done.fault
    assert (done.files, done.deleted, len(left)) == (3, 2, 1)
    assert [path for path in leftovers(tmp_path, "gw") if path != subject] == []


def test_a_disk_that_fails_while_a_journal_is_read_leaves_it_whole(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = writer(ring, tmp_path)
    for number in range(4):
        put(ring, number, 5, numbered(10 * number, 10))
        take(made, ring)
    made.rotate()
    (journal,), open_stream = leftovers(tmp_path, "gw"), pa.ipc.open_stream

    class Failing:
        """The stream of a file whose end cannot be read."""

        def __init__(self, file: pa.NativeFile) -> None:
            self._stream, self._read = open_stream(file), 0

        def read_next_batch_with_custom_metadata(self) -> object:
            self._read += 1
            if self._read > 2:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return self._stream.read_next_batch_with_custom_metadata()

    with monkeypatch.context() as patched:
        patched.setattr(pa.ipc, "open_stream", Failing)
        assert finish_every(tmp_path, "gw") == (0, f"{journal}: Input/output error")
        with pytest.raises(OSError, match="Input/output error"):
            resume(tmp_path, "gw", 7)
    assert finish_every(tmp_path, "gw") == (1, "")
    assert [row["payload"] for row in rows_in(tmp_path)] == numbered(0, 40)


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
