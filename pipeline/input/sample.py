"""A capture of a few frames, made up: to warm Spark up, and to try the jobs without a recorder."""

from pathlib import Path
from typing import Any, Final

from capture import schema
from capture.files import capture_file, name_of

START_NS: Final = 1_780_000_000_000_000_000
FRAMES: Final = 80
PAUSE: Final = range(20, 40)
"""Frames that were not carried: for 200 ms nobody put anything onto the other segment."""


def write(directory: Path, frames: int = FRAMES) -> None:
    """Write one gateway with one bridge and two segments. Frames in the pause, and the last one, are lost."""
    import pyarrow as pa

    from capture import parquet

    rows = [row for number in range(frames) for row in _rows(number, lost=number in (*PAUSE, frames - 1))]
    for number, row in enumerate(rows):
        row["cap_seq"] = number
    metadata = {
        schema.META_VERSION: str(schema.VERSION),
        schema.META_GATEWAY: "gw",
        schema.META_BOOT: str(START_NS),
    }
    path = capture_file(directory, "2026-05-28", "gw", name_of(START_NS, 0))
    path.parent.mkdir(parents=True)
    table = pa.Table.from_pylist(rows, schema=schema.arrow_schema(metadata))
    parquet.write(path, table.schema, table.to_batches())


def _rows(number: int, lost: bool) -> list[dict[str, Any]]:
    common = {
        "boot": START_NS, "kind": schema.Kind.FRAME.value, "hub": "bridge sample", "count": 1, "verdict": 0,
        "message_bytes": 24, "type": 1, "tokens": [1, 2 + number % 2], "payload": b"%d" % number,
    }  # fmt: skip
    came = START_NS + number * 10_000_000
    rows = [{**common, "ts_ns": came, "bus": "left", "peer": "a", "dir": 0}]
    return (
        rows if lost else [*rows, {**common, "ts_ns": came + 50_000, "bus": "right", "peer": "b", "dir": 1}]
    )
