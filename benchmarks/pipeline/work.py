"""The work of Spark for an audit: jobs, rows read from files, rows that go to the driver.

Spark keeps these numbers for its pages. They are read from its stores through py4j, which a job never does.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest.mock import patch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class Work(NamedTuple):
    """Jobs of Spark, rows read from files, rows that the driver collected, and rows that it passed on to all
    workers (broadcasts)."""

    jobs: int
    read: int
    collected: int
    broadcast: int


KEPT: Final = {
    "spark.ui.retainedJobs": "500", "spark.ui.retainedStages": "500",
    "spark.sql.ui.retainedExecutions": "100",
}  # fmt: skip
"""Settings by which Spark forgets nothing of an audit before it is counted."""


def counted(spark: "SparkSession", act: Callable[[], object]) -> Work:
    """Count what a classic session does in `act`."""
    from pyspark.sql.classic.dataframe import DataFrame

    collected = 0
    collect, to_arrow = DataFrame.collect, DataFrame.toArrow

    def collecting(frame: DataFrame) -> list[Any]:
        nonlocal collected
        rows = collect(frame)
        collected += len(rows)
        return rows

    def to_table(frame: DataFrame) -> "pa.Table":
        nonlocal collected
        table = to_arrow(frame)
        collected += table.num_rows
        return table

    before = _Stores(spark)
    with patch.object(DataFrame, "collect", collecting), patch.object(DataFrame, "toArrow", to_table):
        act()
    after = _Stores(spark)
    rows = sum(after.read[stage] for stage in after.read.keys() - before.read.keys())
    broadcast = sum(after.broadcast[one] for one in after.broadcast.keys() - before.broadcast.keys())
    return Work(len(after.jobs - before.jobs), rows, collected, broadcast)


class _Stores:
    """The numbers of a session at one time: `jobs`, rows that stages `read`, rows of `broadcast`s."""

    def __init__(self, spark: Any) -> None:
        context, java = spark.sparkContext._jsc.sc(), spark.sparkContext._gateway  # noqa: SLF001
        context.listenerBus().waitUntilEmpty()
        store = context.statusStore()
        self.jobs = {job.jobId() for job in self._each(store.jobsList(None))}
        quantiles = java.new_array(java.jvm.double, 0)
        stages = store.stageList(None, False, False, quantiles, None)
        self.read = {(one.stageId(), one.attemptId()): one.inputRecords() for one in self._each(stages)}
        plans = spark._jsparkSession.sharedState().statusStore()  # noqa: SLF001
        self.broadcast = dict(self._broadcasts(plans))

    def _each(self, sequence: Any) -> Iterator[Any]:
        """Yield the elements of a Scala sequence."""
        iterator = sequence.iterator()
        while iterator.hasNext():
            yield iterator.next()

    def _broadcasts(self, store: Any) -> Iterator[tuple[int, int]]:
        """Yield the rows of each broadcast, by the number of Spark's counter: one may be in several plans."""
        for execution in self._each(store.executionsList()):
            number = execution.executionId()
            values = store.executionMetrics(number)
            for node in self._each(store.planGraph(number).allNodes()):
                for metric in self._each(node.metrics()) if node.name() == "BroadcastExchange" else ():
                    text = values.get(metric.accumulatorId())
                    if metric.name() == "number of output rows" and text.isDefined():
                        yield metric.accumulatorId(), int(text.get().replace(",", ""))
