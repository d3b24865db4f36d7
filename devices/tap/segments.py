"""Files of a capture: the journal that survives a torn tail, and the Parquet segments made of it.

Journal: an Arrow IPC stream (lz4), whole batches appended and synced, locked by the process that writes it.
Segment: Parquet (zstd), written aside, synced and renamed. Needs pyarrow.
"""

import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from capture import contents
from capture.schema import (
    GATEWAY,
    JOURNAL,
    JOURNAL_SUFFIX,
    META_GATEWAY,
    SEGMENT_SUFFIX,
    UNFINISHED_SUFFIX,
    segment_directory,
    segment_name,
    segment_schema,
)

GROUP_ROWS = 1 << 17
_DELTA = ("ts_ns", "cap_seq", "seq")
_LEVEL = 3
DAY_NS = 86_400 * 10**9
_NEXT = "next"


def day_of(ts_ns: int) -> str:
    """`YYYY-MM-DD`, in UTC."""
    return datetime.fromtimestamp(ts_ns // 10**9, UTC).strftime("%Y-%m-%d")


def journal_directory(root: Path, gateway: str) -> Path:
    return root / JOURNAL / f"{GATEWAY}={gateway}"


class Journal:
    """An open journal. `add` encodes, `sync` puts what was added into the file: again, where it failed."""

    def __init__(self, directory: Path, name: str, schema: pa.Schema) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = _create(directory / f"{name}{JOURNAL_SUFFIX}")
        self._sink = _Sink()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._stream = pa.ipc.new_stream(self._sink, schema, options=options)
        self.size_bytes = 0

    def add(self, batch: pa.RecordBatch, next_number: int) -> None:
        """Encode a batch, after which the ring's record `next_number` is the next."""
        self._stream.write_batch(batch, custom_metadata={_NEXT: str(next_number)})

    def sync(self) -> None:
        """Append and sync. Raises `OSError` with the file as it was, and nothing of what was added lost."""
        data = b"".join(self._sink.parts)
        self._sink.parts = [data]
        try:
            self._append(data)
        except OSError:
            os.ftruncate(self._file, self.size_bytes)
            raise
        self._sink.parts = []
        self.size_bytes += len(data)

    def _append(self, data: bytes) -> None:
        written, view = 0, memoryview(data)
        while written < len(data):
            written += os.pwrite(self._file, view[written:], self.size_bytes + written)
        os.fsync(self._file)

    def close(self) -> None:
        """Ends the lock: whoever takes it next makes a segment of the file."""
        os.close(self._file)


class _Sink:
    """What pyarrow takes for a file; it gathers what is written."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def flush(self) -> None: ...
    def close(self) -> None: ...
    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def _create(path: Path) -> int:
    """An empty file, locked; again, where another process took it for a leftover meanwhile and deleted it.

    A file of that name that is there already holds no whole batch, or the name would be another.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            os.ftruncate(file, 0)
            return file
        os.close(file)


def leftovers(root: Path, gateway: str) -> list[Path]:
    """Journals of `gateway`, oldest first, whether somebody writes them or not."""
    return sorted(journal_directory(root, gateway).glob(f"*{JOURNAL_SUFFIX}"))


def batches_of(path: Path) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The whole batches of a journal, each with the next record's number; a torn tail is left out."""
    with pa.OSFile(str(path)) as file:
        try:
            stream = pa.ipc.open_stream(file)
            while True:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
                yield batch, int(metadata[_NEXT.encode()])
        except (StopIteration, pa.ArrowInvalid, OSError):
            return


def resume(root: Path, gateway: str, boot: int) -> tuple[int, int]:
    """The next record's number and the next row's, after what journals of this run of a recorder have."""
    number = row = 0
    for path in leftovers(root, gateway):
        if path.name.startswith(segment_name(boot, 0).partition("-")[0]):
            for batch, next_number in batches_of(path):
                number, row = next_number, batch["cap_seq"][-1].as_py() + 1
    return number, row


def finish(root: Path, journal: Path) -> Path | None:
    """Make a segment of a journal and delete that; None where another process writes it or it is empty.

    Raises `OSError` with nothing lost: the journal stays, what was begun aside goes.
    """
    try:
        file = os.open(journal, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _finish(root, journal) if os.fstat(file).st_nlink else None
    except BlockingIOError:
        return None
    finally:
        os.close(file)


def _finish(root: Path, journal: Path) -> Path | None:
    batches = (batch for batch, _ in batches_of(journal))
    first = next(batches, None)
    target = None if first is None else _target(root, first, journal.stem)
    if first is not None and target is not None and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{journal.stem}{UNFINISHED_SUFFIX}")
        try:
            _write_parquet(aside, first, batches)
            aside.replace(target)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        _sync(target.parent)
    journal.unlink()
    return target


def _target(root: Path, first: pa.RecordBatch, name: str) -> Path:
    gateway = first.schema.metadata[META_GATEWAY.encode()].decode()
    directory = segment_directory(root, day_of(first["ts_ns"][0].as_py()), gateway)
    return directory / f"{name}{SEGMENT_SUFFIX}"


def _write_parquet(path: Path, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> None:
    with path.open("wb") as file:
        with _writer(file, segment_schema(first.schema)) as writer:
            for table in contents.told(_groups(first, rest)):
                writer.write_table(table)
        file.flush()
        os.fsync(file.fileno())


def _writer(file: object, schema: pa.Schema) -> parquet.ParquetWriter:
    return parquet.ParquetWriter(
        file,
        schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[
            n if n != "tokens" else "tokens.list.element" for n in schema.names if n not in _DELTA
        ],
        column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
    )


def _groups(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of about `GROUP_ROWS`, so that memory stays bounded and readers find few, large groups."""
    held, rows = [first], first.num_rows
    for batch in rest:
        held.append(batch)
        rows += batch.num_rows
        if rows >= GROUP_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
