"""A Spark data source: `spark.read.format("buscoupler")` reads pcapng, and captures in an object store
(`pipeline.input.buckets`); `df.write.format("buscoupler")` sends frames; and
`spark.readStream.format("buscoupler")` follows a recorder (`pipeline.input.live`).

    spark.dataSource.register(source.Buscoupler)
    spark.read.format("buscoupler").option("gateway", "gw-a").load("plant.pcapng")
    alerts.write.format("buscoupler").mode("append").option("pattern", "alert").save("tcp://127.0.0.1:5555")

Reading is pruned by options, not by filters: with `pushFilters` Spark 4.3.0 gives wrong results, for what
is planned once is shared by every query of one `load()` (tests/pipeline/input/test_source.py keeps the case).
"""

import glob
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)

from bus.machine.partial import replacing
from bus.wire.envelope import take_apart
from bus.wire.frame import unpack
from capture.pcapng import Packet
from capture.reader import read_pcapng
from capture.schema import DDL_PARTITIONED, TOLD, Kind
from pipeline.errors import PipelineError
from pipeline.input.span import Span
from pipeline.input.stored import STORES

if TYPE_CHECKING:
    from pyspark.sql.types import Row, StructType

CONNECT_S: Final = 5.0
SENT: Final = "sent"  # file beside the checkpoint: the last batch whose frames went out


class Buscoupler(DataSource):
    """The data source. Options for reading: path, gateway (several with commas), from_ns, to_ns. The path is
    that of pcapng (a file, a directory or a pattern), or the URL of a capture in an object store.

    For writing: path or `to` (a bus's URL), pattern (a/b/c). Frames are the column `payload`, with the column
    `tokens` as their pattern if there is one. When streaming, `checkpoint` (a directory) keeps a batch that
    is repeated after a crash from going out twice.
    """

    @classmethod
    def name(cls) -> str:
        return "buscoupler"

    def schema(self) -> str:
        return DDL_PARTITIONED

    def reader(self, schema: "StructType") -> DataSourceReader:
        path, span = self.options.get("path", ""), span_of(self.options)
        if not path.startswith(STORES):
            return Reader(path, span)
        from pipeline.input.buckets import BucketReader

        return BucketReader(path, span, schema)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        from pipeline.input.live import LiveReader

        return LiveReader(dict(self.options), schema)

    def writer(self, schema: "StructType", overwrite: bool) -> "Writer":
        return Writer(dict(self.options))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":
        return StreamWriter(dict(self.options))


def options_of(span: Span) -> dict[str, str]:
    """Return the options that choose a span."""
    bounds = {"from_ns": span.from_ns, "to_ns": span.to_ns}
    found = {name: str(bound) for name, bound in bounds.items() if bound is not None}
    return found | ({"gateway": ",".join(span.gateways)} if span.gateways else {})


def span_of(options: Mapping[str, str]) -> Span:
    """Return the span that options choose."""
    begin, end = (int(options[name]) if name in options else None for name in ("from_ns", "to_ns"))
    return Span(begin, end, tuple(options["gateway"].split(",")) if "gateway" in options else ())


class Reader(DataSourceReader):
    """A reader of pcapng files."""

    def __init__(self, path: str, span: Span) -> None:
        self.path, self.span = path, span

    def partitions(self) -> list[InputPartition]:
        """Make a partition of each file: pcapng can only be read from its beginning.

        Raises `PipelineError` if there is none.
        """
        path = Path(self.path)
        if path.is_dir():
            found = sorted(map(str, path.rglob("*.pcapng")))
        else:
            found = [self.path] if path.exists() else sorted(glob.glob(self.path, recursive=True))
        if not found:
            raise PipelineError(f"{self.path}: no such pcapng file")
        return [InputPartition(path) for path in found]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        for packet in read_pcapng(Path(partition.value)):
            here = not self.span.gateways or packet.gateway in self.span.gateways
            if here and packet.kind not in TOLD and self.span.touches(packet.ts_ns, packet.ts_ns):
                yield row(packet)


def row(packet: Packet) -> tuple[Any, ...]:
    """Make a row of the capture's schema of a packet, with the partition columns and without `contents`."""
    head = (packet.ts_ns, packet.boot, packet.cap_seq, packet.kind, packet.hub, packet.bus, packet.peer)
    fate = (packet.dir, packet.messages, packet.verdict)
    tail = (None, _day(packet.ts_ns), packet.gateway)
    if packet.kind == Kind.FRAME:
        return (*head, *fate, None, *_parts(packet.message), *tail)
    if packet.kind == Kind.WIRE:
        items, _, item = packet.message.partition(b":")
        return (*head, *fate, items.decode(errors="replace"), len(item), *[None] * 5, item, *tail)
    return (*head, *fate, packet.message.decode(errors="replace"), *[None] * 7, *tail)


def _parts(message: bytes) -> tuple[Any, ...]:
    """Split a message into its size, origin, seq, hops, type, tokens, payload."""
    envelope, content, framed = take_apart(message)
    stamp = (envelope.origin, envelope.sequence, envelope.hops) if envelope else (None, None, None)
    if not framed:
        return (len(message), *stamp, None, None, content)
    frame = unpack(content)
    return (len(message), *stamp, frame.type, list(frame.tokens), frame.data)


def _day(ts_ns: int) -> date:
    return datetime.fromtimestamp(ts_ns // 1_000_000_000, UTC).date()


class Frames(WriterCommitMessage):
    """The frames that one partition sends: (pattern, data) each; None stands for the pattern of the
    option."""

    def __init__(self, frames: "list[tuple[list[int] | None, bytes]]") -> None:
        self.frames = frames


class _Sending:
    """The part that both writers share: executors gather (`write`), the driver sends."""

    def __init__(self, options: dict[str, str]) -> None:
        self.url = options.get("to") or options.get("path") or ""
        self.pattern = [name for name in options.get("pattern", "").split("/") if name]
        self.checkpoint = options.get("checkpoint")
        if not self.url:
            raise PipelineError("give the bus's URL: .option('to', 'tcp://HOST:PORT')")

    def write(self, iterator: "Iterator[Row]") -> WriterCommitMessage:
        """Gather the frames of a partition's rows."""
        found: list[tuple[list[int] | None, bytes]] = []
        for one in iterator:
            values = one.asDict()
            data = values["payload"]
            found.append((values.get("tokens"), data.encode() if isinstance(data, str) else bytes(data)))
        return Frames(found)

    def send(self, messages: "list[WriterCommitMessage | None]") -> None:
        """Send the frames of a batch. Raises `LinkError` if the bus cannot be reached: the batch is then
        tried again."""
        from bus.client.socket import Bus
        from bus.errors import LinkError

        frames = [frame for message in messages if isinstance(message, Frames) for frame in message.frames]
        if not frames:
            return
        with Bus(dial=self.url) as bus:
            if not bus.wait_peers(1, CONNECT_S):
                raise LinkError(f"{self.url}: nobody there to take {len(frames)} frames")
            for tokens, data in frames:
                bus.send(tokens if tokens is not None else self.pattern, data)


class Writer(_Sending, DataSourceWriter):
    """A writer of a batch query: its rows go onto the bus once all are there."""

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        self.send(messages)


class StreamWriter(_Sending, DataSourceStreamWriter):
    """A writer of a streaming query: the rows of each batch go onto the bus."""

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        """Send a batch once, however often Spark repeats it. It goes out twice only if we crash between
        sending it and noting that down."""
        note = Path(self.checkpoint, SENT) if self.checkpoint else None
        if note and note.exists() and json.loads(note.read_text()) >= batchId:
            return
        self.send(messages)
        if note:
            with replacing(note) as partial:
                partial.write_text(json.dumps(batchId))
