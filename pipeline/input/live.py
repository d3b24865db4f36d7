"""A recorder's directory as a stream: `spark.readStream.format("buscoupler").load(DIRECTORY)`.

Rows come from journals about a second after they were recorded, and from files where there is no journal.
The offset says which rows were read, so a stream that starts again goes on there: it replays the directory.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from capture.files import CAPTURE, days_directory
from capture.schema import DATE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from capture.live import Live, Piece, Position

ROWS: Final = 500_000
"""Rows of one batch, about, if the option `max_rows` says nothing else."""


PART_ROWS: Final = 50_000
"""Rows of one task, about: a task costs more than the reading of a small file."""


class Part(InputPartition):
    """The pieces of a batch that one task reads."""

    def __init__(self, pieces: "list[Piece]") -> None:
        self.pieces = pieces


class LiveReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of the directory of a recorder, or of days, on a file system that all workers have.

    Options: `max_rows` of one batch, about.
    """

    def __init__(self, options: dict[str, str], schema: "StructType") -> None:
        given = Path(options.get("path", "")).absolute()
        is_days = given.name == CAPTURE or any(given.glob(f"{DATE}=*"))
        self.days = given if is_days else days_directory(given)
        self.limit_rows = int(options.get("max_rows", ROWS))
        self._schema = schema
        self._live: Live | None = None
        self._until: Position | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_live": None}  # what the driver knows is not for its workers

    @property
    def live(self) -> "Live":
        from capture.live import Live

        self._live = self._live or Live(self.days)
        return self._live

    def initialOffset(self) -> dict[str, Any]:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.limit_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take no more than what there is now."""
        from capture.live import latest

        self._until = latest({}, self.live.held(), None)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the offset after the next batch. Raises `CaptureError` for a file that cannot be read."""
        from capture.live import latest, within

        held = self.live.held()
        if self._until is not None:
            held = list(within(held, self._until))
        rows = None if isinstance(limit, ReadAllAvailable) else self.limit_rows
        return written(latest(read(start), held, rows))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Make partitions of the files, as far as they are in the batch: of a large one, or several small
        ones."""
        from capture.live import pieces

        return [Part(some) for some in packed(pieces(read(start), read(end), self.live.held()), PART_ROWS)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from capture import live

        assert isinstance(partition, Part)
        for piece in partition.pieces:
            for batch in live.read(self.days, piece):
                if len(batch):
                    yield self._cast(batch)

    def _cast(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Give a batch the columns and types that Spark wants."""
        from pyspark.sql.pandas.types import to_arrow_schema

        from pipeline.input.arrow import fitted

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return fitted(columns, len(batch), to_arrow_schema(self._schema))


def packed(pieces: "Iterable[Piece]", rows: int) -> "list[list[Piece]]":
    """Join pieces, in their order, to lists of about so many rows."""
    found: list[list[Piece]] = []
    held = rows
    for piece in pieces:
        if held >= rows:
            found.append([])
            held = 0
        found[-1].append(piece)
        held += piece.last - piece.first + 1
    return found


def written(position: "Position") -> dict[str, Any]:
    """Return a position as an offset: for each gateway and run, `first-last` of the rows, with commas."""
    return {
        gateway: {
            str(boot): ",".join(f"{first}-{last}" for first, last in some) for boot, some in rows.items()
        }
        for gateway, rows in position.items()
    }


def read(offset: dict[str, Any]) -> "Position":
    """Return an offset as a position."""
    return {
        gateway: {int(boot): [_interval(one) for one in some.split(",")] for boot, some in rows.items()}
        for gateway, rows in offset.items()
    }


def _interval(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last)
