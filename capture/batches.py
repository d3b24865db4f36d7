"""The whole batches of a journal, for those that write it and finish it. Needs pyarrow, and little of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from capture.files import day_of
from capture.schema import META_DAY

NEXT: Final = "next"
"""The key in the metadata of each batch of the number of the next record."""

BAD: Final = (StopIteration, EOFError, OSError, LookupError, ValueError, TypeError, pa.ArrowException)
"""The errors that Arrow and we raise for bytes that are no journal's: a torn tail, or a damaged file."""


def batches_of(path: Path) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Read the whole batches of a journal, each with the next record's number. A torn tail is left out.

    Raises `OSError` if the disk fails: what was not read may be whole.
    """
    with pa.OSFile(str(path)) as file:
        try:
            stream = pa.ipc.open_stream(file)
            while True:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
                yield batch, int(metadata[NEXT.encode()])
        except BAD as error:
            if isinstance(error, OSError) and error.errno:  # Arrow's own have none
                raise


def day_recorded(batch: pa.RecordBatch) -> str:
    """Return the day of a journal's rows, `YYYY-MM-DD` in UTC. One of an older version has that of its first.

    The rows do not say it: a frame of CAN that comes at midnight has the time of its adapter, before that.
    """
    told = (batch.schema.metadata or {}).get(META_DAY.encode())
    return day_of(batch["ts_ns"][0].as_py()) if told is None else told.decode()
