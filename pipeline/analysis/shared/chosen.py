"""The first row of each group, in an order of several columns.

A structure of columns as the order or value of an aggregate (`max_by`, `min`, `first`) does the same with few
groups. With many, Sail counts for each group the memory of the batch that its row came in: of 50,000 groups
that are some 16 GB, which it refuses.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Sequence

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
