"""Small tables: those that Python has worked out. A job shows them as it shows those that an engine has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row

from pipeline.analysis.shared.frames import local_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Small:
    """A table: the `types` of its columns by name, and its `rows`. Its methods are those of a DataFrame that
    a job needs to show it, so that no engine has to be asked."""

    types: Mapping[str, Any]
    rows: Sequence[Sequence[Any]]

    def collect(self) -> list[Row]:
        """Return all rows."""
        made = Row(*self.types)
        return [made(*row) for row in self.rows]

    def count(self) -> int:
        """Return how many rows there are."""
        return len(self.rows)

    def limit(self, most: int) -> "Small":
        """Keep the first rows, at `most` so many."""
        return replace(self, rows=self.rows[:most])

    def select(self, *names: str) -> "Small":
        """Keep the columns with these names."""
        places = [list(self.types).index(name) for name in names]
        kept = [tuple(row[place] for place in places) for row in self.rows]
        return Small({name: self.types[name] for name in names}, kept)

    def orderBy(self, *names: str) -> "Small":
        """Sort the rows by these columns, what is missing first."""
        places = [list(self.types).index(name) for name in names]

        def order(row: Sequence[Any]) -> list[tuple[bool, Any]]:
            return [(row[place] is not None, row[place]) for place in places]

        return replace(self, rows=sorted(self.rows, key=order))


def framed(spark: "SparkSession", table: "DataFrame | Small") -> "DataFrame":
    """Return a table as an engine has it."""
    return local_table(spark, table.types, table.rows) if isinstance(table, Small) else table
