"""Targets that read files of captures."""

import io
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pyarrow as pa

from capture.batches import batches_of
from capture.files import CaptureError
from capture.journals import Index
from capture.pcapng import PcapngError, Writer, packets
from capture.reader import read
from tests.capture.capture_support import FRAMES, STAMPED, row
from tests.fuzz.target import Pieces, Target


def _pcapng(pieces: Pieces) -> object:
    return list(packets(io.BytesIO(b"".join(pieces))))


def _pcapng_seeds() -> list[bytes]:
    writer = Writer()
    rows = [row(number, message) for number, message in enumerate((*FRAMES[:4], *STAMPED[:2]))]
    data = writer.head() + writer.names(["fridge", "temp"], 10**18) + b"".join(map(writer.blocks, rows))
    swapped = bytes.fromhex("0a0d0d0a0000001c1a2b3c4d00010000ffffffffffffffff0000001c")
    return [data, data[:200], swapped]


@cache
def place() -> Path:
    """Return a directory of this process for a file that is read."""
    import atexit

    place = Path(mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def lay(name: str, pieces: Pieces) -> Path:
    """Write an input to a file of this process, which is a new one each time: one that is cut and written
    again goes to the disk at once."""
    path = place() / name
    path.unlink(missing_ok=True)
    path.write_bytes(b"".join(pieces))
    return path


def _segment(pieces: Pieces) -> object:
    day = "capture/date=2026-11-22/gateway=g"
    (place() / day).mkdir(parents=True, exist_ok=True)
    lay(f"{day}/1-0.parquet", pieces)
    return list(read(place()))


def _segment_seeds() -> list[bytes]:
    from capture.parquet import write
    from capture.schema import arrow_schema

    path = place() / "seed.parquet"
    schema = arrow_schema({})
    write(path, schema, [_batch(schema)])
    return [path.read_bytes()]


def _batch(schema: pa.Schema) -> pa.RecordBatch:
    rows = []
    for number in range(40):
        known = {
            "ts_ns": 10**18 + number,
            "boot": 3,
            "cap_seq": number,
            "hub": "bus p",
            "bus": "bus p",
            "peer": "x",
        }
        known |= {"dir": 0, "kind": 0, "verdict": 0, "count": 1, "type": 1, "tokens": [1, number]}
        known |= {"payload": b"%d" % number, "origin": 9, "seq": number, "hops": 8}
        rows.append({field.name: known.get(field.name) for field in schema})
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def _journal(pieces: Pieces) -> object:
    path = lay("journal.arrows", pieces)
    index = Index(path)
    index.look()
    return [(batch.num_rows, following) for batch, following in batches_of(path)], index.batches


def _journal_seeds() -> list[bytes]:
    from capture.schema import arrow_schema

    schema = arrow_schema({})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for _ in range(2):
            writer.write_batch(_batch(schema), custom_metadata={"next": "40"})
    return [sink.getvalue().to_pybytes()]


TARGETS: Final = (
    Target("pcapng", "pcapng of captures", _pcapng, _pcapng_seeds, (PcapngError,), whole=True),
    Target(
        "segment",
        "capture files",
        _segment,
        _segment_seeds,
        (CaptureError,),
        whole=True,
        inputs=500,
        why="2 ms an input: a file is written, and read by Arrow",
    ),
    Target(
        "journal",
        "journals of a recorder",
        _journal,
        _journal_seeds,
        whole=True,
    ),
)
