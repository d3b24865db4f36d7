"""Capture files made of journals. Needs pyarrow."""

import fcntl
import os
from itertools import chain
from pathlib import Path

import pyarrow as pa

from capture import parquet
from capture.files import UNFINISHED_SUFFIX, capture_file, day_of
from capture.journals import batches_of
from capture.schema import META_GATEWAY


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
            parquet.write(aside, first.schema, chain([first], batches))
            aside.replace(target)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        parquet.sync(target.parent)
    journal.unlink()
    return target


def _target(root: Path, first: pa.RecordBatch, name: str) -> Path:
    gateway = first.schema.metadata[META_GATEWAY.encode()].decode()
    return capture_file(root, day_of(first["ts_ns"][0].as_py()), gateway, name)
