"""The spreading of work over the files of a capture: by `mapInArrow` on the workers of Spark, which read the
columns that are needed, or by processes of this machine where the engine runs no Python of ours (Sail).

Work on rows that Spark reads itself is `of_rows`: of a stream, or of a place that pyarrow does not know.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyarrow.parquet import ParquetFile, ParquetWriter

from bus.machine.parents import end_with
from bus.machine.scratch import Scratch
from capture import files
from capture.files import gateway_of
from capture.stores import store_of
from pipeline import cache
from pipeline.input.span import Span
from pipeline.input.stored import STORES, listing
from pipeline.signals.reader import COLUMNS, Reader
from pipeline.signals.wanted import Wanted
from pipeline.signals.work import Work, ddl, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST_BYTES: Final = 2 << 20
MOST_BYTES: Final = 32 << 20
"""A piece is so large, but for a small capture: a task costs more than the reading of a small file."""

_BATCH_ROWS: Final = 1 << 17
_PARTS: Final = 64
_ROWS: Final = (*COLUMNS, "gateway")


class Piece(NamedTuple):
    """Files of a capture, relative to it; of each the part `part` of `parts`."""

    number: int
    names: tuple[str, ...]
    part: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Task:
    """Work on a piece of the capture at `place`, which has a Delta log if it `is_logged`."""

    place: str
    is_logged: bool
    wanted: Wanted
    work: Work

    def __call__(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the results of a piece. Raises `CaptureError` for a file of a later version."""
        reader = Reader(self.wanted)
        self.work.begin(piece.number)
        for name, batch in self.batches(piece):
            yield from self.work(reader.blocks(batch, gateway_of(Path(name))))

    def batches(self, piece: Piece) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of a piece, each batch with the name of its file."""
        store = store_of(self.place)
        for name in piece.names:
            with (
                store.opened(name) as stream,
                ParquetFile(stream, page_checksum_verification=True, read_dictionary=["hub", "bus"]) as file,
            ):
                if files.is_ours(file) or not self.is_logged:
                    files.check_version(f"{self.place}/{name}", file.metadata.metadata or {})
                count = file.num_row_groups
                groups = range(piece.part * count // piece.parts, (piece.part + 1) * count // piece.parts)
                some = [group for group in groups if self._may_have(file, group)]
                for batch in file.iter_batches(_BATCH_ROWS, some, list(COLUMNS), use_threads=False):
                    yield name, batch

    def _may_have(self, file: ParquetFile, group: int) -> bool:
        """Return whether a row group may have rows of the time that is wanted."""
        span = Span(self.wanted.from_ns, self.wanted.to_ns)
        at = file.schema_arrow.get_field_index("ts_ns")
        time = file.metadata.row_group(group).column(at).statistics
        return not span.is_bounded or not time or not time.has_min_max or span.touches(time.min, time.max)


def divided(sizes: dict[str, int]) -> list[Piece]:
    """Divide files: small ones together, and large ones by their row groups."""
    return [Piece(number, *one) for number, one in enumerate(_divided(sizes))]


def _divided(sizes: dict[str, int]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    most = min(max(sum(sizes.values()) // _PARTS, LEAST_BYTES), MOST_BYTES)
    held, held_bytes = list[str](), 0
    for name, size in sizes.items():
        if held and held_bytes + size > most:
            yield tuple(held), 0, 1
            held, held_bytes = [], 0
        if size > most:
            parts = -(-size // most)
            yield from (((name,), part, parts) for part in range(parts))
        else:
            held.append(name)
            held_bytes += size
    if held:
        yield tuple(held), 0, 1


def listed(place: str, span: Span) -> tuple[dict[str, int], bool] | None:
    """Return the files of a span of a capture and their sizes, and whether a Delta log has them.

    None if only the engine can look into the place.
    """
    if "://" in place:
        if not place.startswith(STORES):
            return None
        found = listing(place, span)
        return found.sizes, found.is_logged
    root = Path(place)
    paths = [path for path in files.listed(root) if span.has(path)]
    return {str(path.relative_to(root)): path.stat().st_size for path in paths}, files.is_delta(root)


class Source(NamedTuple):
    """A capture to read: the directory of its days, the part of it, and its rows if the engine reads them."""

    spark: "SparkSession"
    place: str
    span: Span
    rows: "Callable[[], DataFrame]"


def done(source: Source, wanted: Wanted, work: Work) -> "DataFrame":
    """Do work on a capture, and return the results as a DataFrame."""
    span = source.span
    wanted = wanted._replace(from_ns=span.from_ns, to_ns=span.to_ns)
    found = listed(source.place, span)
    if found is None:
        return of_rows(source.rows(), wanted, work)
    sizes, is_logged = found
    task = Task(source.place, is_logged, wanted, work)
    spread = _by_processes if cache.writes_down(source.spark) else _by_workers
    return spread(source.spark, task, divided(sizes))


def of_rows(rows: "DataFrame", wanted: Wanted, work: Work) -> "DataFrame":
    """Do work on the rows of a DataFrame, which may be a stream."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, reader = TaskContext.get(), Reader(wanted)
        work.begin(task.partitionId() if task else 0)
        for batch in batches:
            for gateway, part in _by_gateway(batch):
                yield from work(reader.blocks(part, gateway))

    from pyspark.sql import functions as F

    numbers = F.col("kind") != 3
    return rows.where(numbers).select(*_ROWS).mapInArrow(run, ddl(work.columns))


def _by_gateway(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    gateways = batch.column("gateway")
    for one in gateways.unique().to_pylist():
        yield one, batch.filter(pa.compute.equal(gateways, one))


def _by_workers(spark: "SparkSession", task: Task, pieces: Sequence[Piece]) -> "DataFrame":
    """Do the work on the workers of Spark, a task for each piece."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from task(pieces[number])

    numbers = spark.range(0, len(pieces), 1, max(1, len(pieces)))
    return numbers.mapInArrow(run, ddl(task.work.columns))


_results: Final[list[Scratch]] = []  # until the process ends


def _by_processes(spark: "SparkSession", task: Task, pieces: Sequence[Piece]) -> "DataFrame":
    """Do the work in processes of this machine, which write the results for the engine to read."""
    results = Scratch("signals-")
    _results.append(results)
    run = _Written(task, results.name)
    workers = min(len(pieces), os.cpu_count() or 1)
    run.write(Path(results.name, "none.parquet"), ())
    if workers > 1:
        with ProcessPoolExecutor(workers, get_context("spawn"), end_with, (os.getpid(),)) as pool:
            for _ in pool.map(run, pieces):
                pass
    elif pieces:
        run(pieces[0])
    return spark.read.schema(ddl(task.work.columns)).parquet(results.name)


@dataclass(frozen=True)
class _Written:
    """A task whose results are written to a file."""

    task: Task
    directory: str

    def __call__(self, piece: Piece) -> None:
        """Do the work on a piece."""
        self.write(Path(self.directory, f"{piece.number}.parquet"), self.task(piece))

    def write(self, path: Path, batches: Iterable[pa.RecordBatch]) -> None:
        """Write results to a file."""
        with ParquetWriter(path, schema(self.task.work.columns), compression="lz4") as writer:
            for batch in batches:
                writer.write_batch(batch)
