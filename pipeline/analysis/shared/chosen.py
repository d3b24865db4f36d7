"""The first row of each group, in an order of several columns, and its least and greatest number.

A structure of columns as the order or value of an aggregate (`max_by`, `min`, `first`) does the same with few
groups. With many, Sail counts for each group the memory of the batch that its row came in: of 50,000 groups
that are some 16 GB, which it refuses.
"""

from math import inf
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame


def first_of(rows: "DataFrame", keys: "Sequence[str]", *order: "str | Column") -> "DataFrame":
    """Select the first row of each group of `keys` in this order."""
    return with_first(rows, "is_first", keys, *order).where("is_first").drop("is_first")


def with_first(rows: "DataFrame", name: str, keys: "Sequence[str]", *order: "str | Column") -> "DataFrame":
    """Add column `name`: whether a row is the first of its group of `keys` in this order."""
    in_order = Window.partitionBy(*keys).orderBy(*order)
    whole = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)  # Sail has no ranges of bytes
    return rows.withColumn(name, F.row_number().over(whole) == 1)


def of_first(name: str, *columns: str) -> "list[Column]":
    """Aggregate to the `columns` of the row that `with_first` marked in column `name`."""
    return [F.max(F.when(F.col(name), F.col(column))).alias(column) for column in columns]


def least(name: str) -> "Column":
    """Aggregate to the least of numbers. To Sail's `min` the least infinity of all is the largest finite
    number."""
    return _bounded(F.min, F.col(name), F.lit(inf))


def most(number: "str | Column") -> "Column":
    """Aggregate to the greatest of numbers; see `least`."""
    return _bounded(F.max, F.col(number) if isinstance(number, str) else number, F.lit(-inf))


def _bounded(aggregate: "Callable[[Column], Column]", number: "Column", end: "Column") -> "Column":
    """Aggregate to `end` if there are numbers, and all of them are that."""
    others = aggregate(F.when(number != end, number))
    return F.coalesce(others, F.when(F.count(number) > 0, end))
