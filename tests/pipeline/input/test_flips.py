"""Single flipped bits in the data of a capture file: an error or no difference, never other rows."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from capture import files
from capture.files import CaptureError
from capture.reader import read
from pipeline.input import read as pipeline
from pipeline.input import sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOOTER_BYTES = 8


def flipped(root: Path, flips: int, rows: Callable[[], object], *errors: type[Exception]) -> tuple[int, int]:
    """Flip a bit of the largest file so often, each time another one. Return how many flips were noticed, and
    how many changed the rows without an error."""
    path = max(files.finished(root), key=lambda path: path.stat().st_size)
    good, want, chance = path.read_bytes(), rows(), random.Random(1)
    end = len(good) - FOOTER_BYTES - int.from_bytes(good[-FOOTER_BYTES:-4], "little")
    noticed = changed = 0
    for _ in range(flips):
        damaged = bytearray(good)
        damaged[chance.randrange(4, end)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            changed += rows() != want
        except errors:
            noticed += 1
    return noticed, changed


def test_no_flipped_bit_makes_other_rows(tmp_path: Path) -> None:
    sample.write(tmp_path)
    noticed, changed = flipped(tmp_path, 300, lambda: list(read(tmp_path)), CaptureError)
    assert changed == 0
    assert noticed > 150


def test_spark_notices_them_too(spark: "SparkSession", tmp_path: Path) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    sample.write(tmp_path)
    root = pipeline.root(str(tmp_path))

    def rows() -> list[str]:
        return sorted(map(str, pipeline.read(spark, root).collect()))

    noticed, changed = flipped(tmp_path, 15, rows, PySparkException, Py4JJavaError)
    assert changed == 0
    assert noticed > 5
