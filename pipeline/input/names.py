"""The names that a job knows: those beside the capture, and those that its user gives."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bus.errors import BusError, TokenError
from bus.names import Names, names_from
from capture import names
from capture.files import NAMES
from pipeline.errors import PipelineError
from pipeline.input import stored
from pipeline.input.read import is_remote, without_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Given = str | list[int | str]
"""Names, or where Spark finds a file of them on a cluster's own file system."""

ReadNames = Callable[[str], list[int | str]]
"""A function that reads the names that a word of the command line stands for. Raises `BusError`."""


def reader(read: ReadNames) -> Callable[[str], Given]:
    """Return `read` for argparse, with errors as argparse shows them. It leaves remote files for later, when
    there is a session.
    """

    def given(word: str) -> Given:
        try:
            return word if is_remote(word) else read(word)
        except BusError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return given


def is_called(bus: str, word: str) -> bool:
    """Return whether a word means a segment: its name, or a word of it as `can0` of `can socketcan:can0 of
    10.0.0.11`."""
    return word == bus or word in re.split(r"[ :]", bus)


def known(spark: "SparkSession", days: str, given: Sequence[Given], is_native: bool = True) -> Names:
    """Return the names beside a capture and those given. If the engine is not `is_native` to the store of the
    capture, pyarrow reads them.

    Raises `CaptureError` for an unreadable file beside the capture, and `PipelineError` for a remote one.
    """
    beside = names.beside(Path(days)) if not is_remote(days) else _beside(spark, days, is_native)
    more = [_remote(spark, one, is_native) if isinstance(one, str) else one for one in given]
    return Names(name for some in (beside, *more) for name in some)


def _beside(spark: "SparkSession", days: str, is_native: bool) -> list[int | str]:
    url = f"{without_settings(days).rstrip('/')}/{NAMES}/*.txt"
    return _names(url, _lines(spark, url) if is_native else stored.beside(days))  # none if no tap wrote any


def _remote(spark: "SparkSession", url: str, is_native: bool) -> list[int | str]:
    by_spark = is_native or not url.startswith(stored.STORES)
    lines = _lines(spark, url) if by_spark else stored.lines(url)
    if not lines:
        raise PipelineError(f"{url}: no such file of names, or nothing in it")
    return _names(url, lines)


def _lines(spark: "SparkSession", url: str) -> list[str]:
    from pyspark.errors import AnalysisException

    try:
        return [row.value for row in spark.read.text(url).collect()]
    except AnalysisException:
        return []  # Spark raises if there is no such file, Sail does not


def _names(url: str, lines: list[str]) -> list[int | str]:
    try:
        return names_from(lines)
    except TokenError as error:
        raise PipelineError(f"{url}: {error}") from None
