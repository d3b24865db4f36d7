"""The page of a report, made of rows without a session."""

from collections import defaultdict
from collections.abc import Sequence

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row

from bus.names import Names
from bus.wire.pattern import Pattern
from pipeline.output.page import page


def test_tokens_are_names_and_else_hex() -> None:
    parts = defaultdict[str, Sequence[Row]](list)
    parts["totals"] = [Row(frames=1)]
    parts["last"] = [Row(tokens=list(Pattern("fridge", "temp")), rows=1)]
    assert "<td>fridge/0x473f888b</td>" in page("/capture", parts, Names(["fridge"]))
