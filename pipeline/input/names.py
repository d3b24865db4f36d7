"""The names that a job knows: those beside the capture, and those that its user gives."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bus.errors import BusError, TokenError
from bus.names import Names, names_from
from capture import names
from capture.files import NAMES
from pipeline.errors import PipelineError
from pipeline.input.read import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Given = str | list[int | str]
"""Names, or where Spark finds a file of them on a cluster's own file system."""

ReadNames = Callable[[str], list[int | str]]
"""Reads the names that a word of the command line stands for. Raises `BusError`."""


def reader(read: ReadNames) -> Callable[[str], Given]:
    """Return `read` for argparse. It leaves remote files for later, when there is a session."""

    def given(word: str) -> Given:
        try:
            return word if is_remote(word) else read(word)
        except BusError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return given


def known(spark: "SparkSession", days: str, given: Sequence[Given]) -> Names:
    """Return the names beside a capture and those given.

    Raises `CaptureError` for an unreadable file beside the capture, and `PipelineError` for a remote one.
    """
    beside = names.beside(Path(days)) if not is_remote(days) else _beside(spark, days)
    more = [_remote(spark, one) if isinstance(one, str) else one for one in given]
    return Names(name for some in (beside, *more) for name in some)


def _beside(spark: "SparkSession", days: str) -> list[int | str]:
    try:
        return _remote(spark, f"{days.rstrip('/')}/{NAMES}/*.txt")
    except PipelineError:
        return []  # no tap wrote any


def _remote(spark: "SparkSession", url: str) -> list[int | str]:
    from pyspark.errors import AnalysisException

    try:
        rows = spark.read.text(url).collect()
    except AnalysisException:
        rows = []  # Spark raises if there is no such file, Sail does not
    if not rows:
        raise PipelineError(f"{url}: no such file of names, or nothing in it")
    try:
        return names_from(row.value for row in rows)
    except TokenError as error:
        raise PipelineError(f"{url}: {error}") from None
