"""Capture files made of journals: Parquet (zstd), written aside, synced and renamed. Needs pyarrow."""

import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from capture import contents
from capture.files import UNFINISHED_SUFFIX, capture_file
from capture.schema import META_GATEWAY, file_schema
from devices.tap.journal import batches_of

GROUP_ROWS = 1 << 17
_DELTA = ("ts_ns", "cap_seq", "seq")
_LEVEL = 3


def day_of(ts_ns: int) -> str:
    """Return the day of a time, `YYYY-MM-DD` in UTC."""
    return datetime.fromtimestamp(ts_ns // 10**9, UTC).strftime("%Y-%m-%d")


def finish(root: Path, journal: Path) -> Path | None:
    """Make a capture file of a journal and delete the journal. None if it is empty or still being written.

    Raises `OSError`; nothing is lost then: the journal stays, and the unfinished file goes.
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
    return capture_file(root, day_of(first["ts_ns"][0].as_py()), gateway, name)


def _write_parquet(path: Path, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> None:
    with path.open("wb") as file:
        with _writer(file, file_schema(first.schema)) as writer:
            for table in contents.summarised(_groups(first, rest)):
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
    """Join batches to tables of about `GROUP_ROWS`: bounded memory, and few, large groups for readers."""
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
