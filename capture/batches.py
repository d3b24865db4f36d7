"""The whole batches of a journal, for those that write it and finish it. Needs pyarrow, and little of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

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
