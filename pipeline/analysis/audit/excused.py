"""Findings that ledgers excuse. A ledger counts, and does not say which frames it means: so the summary has
fewer of them, and findings go, or are said to be nobody's fault, where the summary has none of them left."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from pipeline.analysis.audit.explain import LOST, NOBODY
from pipeline.analysis.audit.judgement import FINDING
from pipeline.analysis.shared.small import Small

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SORT: Final = ("kind", "stage", "segment", "gateway", "hub", "matched")
"""The columns that a finding shares with its row of the summary, which begins with them."""

Sort = tuple[Any, ...]
"""The values of `_SORT`."""


def excused(
    found: "DataFrame | Small", before: Iterable[Sequence[Any]], after: Iterable[Sequence[Any]]
) -> "DataFrame | Small":
    """Return findings that agree with the summary `after` ledgers were asked; `before` has them all."""
    left, asked = ({tuple(row[: len(_SORT)]) for row in rows} for rows in (after, before))
    nobodys = {(LOST, *one[1:]) for one in left if one[0] == NOBODY}
    kinds = {one: NOBODY if one in nobodys else None for one in sorted(asked - left, key=repr)}
    if not kinds:
        return found
    return replace(found, rows=_rows(found, kinds)) if isinstance(found, Small) else _planned(found, kinds)


def _rows(found: Small, kinds: Mapping[Sort, str | None]) -> list[Sequence[Any]]:
    """Return the rows with their new kinds, without those that have none."""
    places, rows = [list(FINDING).index(name) for name in _SORT], list[Sequence[Any]]()
    for row in found.rows:
        sort = tuple(row[place] for place in places)
        kind = kinds.get(sort, sort[0])
        if kind is not None:
            rows.append([kind if place == places[0] else value for place, value in enumerate(row)])
    return rows


def _planned(found: "DataFrame", kinds: Mapping[Sort, str | None]) -> "DataFrame":
    kind = F.col("kind")
    for sort, new in kinds.items():
        is_it = F.lit(True)
        for name, value in zip(_SORT, sort, strict=True):
            is_it = is_it & F.col(name).eqNullSafe(F.lit(value))
        kind = F.when(is_it, F.lit(new)).otherwise(kind)
    return found.withColumn("kind", kind).where("kind IS NOT NULL")
