"""Captures whose files are in several parts, as a recorder writes them."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

from capture import files, parquet
from capture.schema import Kind, arrow_schema
from tests.rigs.planted import Plan, generate

PARTS: Final = 6


def planted(where: Path) -> Path:
    """Make a capture of four gateways, each with a day of `PARTS` files. Return the recorder's directory."""
    return shutil.copytree(_made(), where / "source")


@cache
def _made() -> Path:
    """Return such a capture, which is made once."""
    where = Path(tempfile.mkdtemp())
    generate(where, Plan(rows=1_500, filtered=True))
    for path in files.listed(where):
        divide(path, PARTS)
    return where


def divide(path: Path, parts: int) -> None:
    """Make several files of one, as a recorder would."""
    file = pq.ParquetFile(path)
    words = {key.decode(): value.decode() for key, value in file.metadata.metadata.items() if b"busc" in key}
    schema = arrow_schema(words)
    table = file.read(schema.names)
    rows = table.filter(pc.not_equal(table["kind"], Kind.CONTENTS.value)).cast(schema)
    path.unlink()
    size = -(-len(rows) // parts)
    for first in range(0, len(rows), size):
        part = rows.slice(first, size)
        name = files.name_of(int(files.boot_of(path)), part["cap_seq"][0].as_py())
        parquet.write(path.with_name(f"{name}.parquet"), schema, part.to_batches())
