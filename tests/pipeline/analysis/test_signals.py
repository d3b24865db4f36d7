"""The sums of signals, of batches that come in any order."""

from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pipeline.analysis.signals import signals
from pipeline.engine.choice import SAIL, SPARK
from pipeline.signals.blocks import KEYS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA: Final = ", ".join([
    *(f"{name} string" for name in KEYS), "rows long", "first_ns long", "last_ns long", "last double",
    "last_text string", "min double", "mean double", "max double", "numbers long", "m2 double", "nans long",
    "gaps long", "longest_ns long", "longest_from_ns long", "outside long",
])  # fmt: skip


def batch(first_ns: int, longest_from_ns: int) -> dict[str, Any]:
    """Return the sums of three values, the longest pause between which is 10 ns."""
    values = {"last": 1.0, "last_text": None, "min": 1.0, "mean": 1.0, "max": 1.0, "numbers": 3, "m2": 0.0}
    pauses = {"gaps": 0, "longest_ns": 10, "longest_from_ns": longest_from_ns}
    times = {"rows": 3, "first_ns": first_ns, "last_ns": first_ns + 15}
    return {**dict.fromkeys(KEYS, "a"), **times, **values, **pauses, "nans": 0, "outside": 0}


@pytest.mark.engines(SPARK, SAIL)
@pytest.mark.parametrize(("apart_ns", "start_ns"), [(20, 105), (40, 115)], ids=["within", "between"])
def test_of_several_pauses_that_are_equally_long_the_first_is_told(
    spark: "SparkSession", apart_ns: int, start_ns: int
) -> None:
    batches = [batch(at_ns, at_ns + 5) for at_ns in range(100, 100 + 3 * apart_ns, apart_ns)]
    for rows in (batches, batches[::-1]):
        (found,) = signals(spark.createDataFrame(rows, _SCHEMA), 1.0).collect()
        assert found.longest_from_ns == start_ns
