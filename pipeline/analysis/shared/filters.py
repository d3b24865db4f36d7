"""Filters of bridges, from the topology that a capture has: which frames go the same ways.

Frames with one first token go the same ways, unless a filter looks deeper. A *flow* is all frames that the
filters treat alike, as a number. A capture without a topology (an older one) has a flow for each first token.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from pipeline.analysis.shared.frames import begins, first_token
from pipeline.analysis.shared.places import Patterns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NUMBERED_MOST: Final = 62
"""Patterns of which a number says whether a frame starts with them."""


def begun(known: Patterns) -> "Column":
    """Return which of the first patterns a frame starts with: bit n stands for pattern n."""
    bits = (
        F.when(begins(one), F.lit(1 << n)).otherwise(F.lit(0)).cast("bigint")
        for n, one in enumerate(known[:NUMBERED_MOST])
    )
    return reduce(add, bits, F.lit(0).cast("bigint"))


def of_frame(known: Patterns) -> "dict[str, Column]":
    """Return what a frame is by its tokens: its `flow`, and where they say more, `token` and `begun`.

    Without patterns nothing has `begun`, and unless one looks deeper the flow is the first token.
    """
    is_deep = any(len(pattern) > 1 for pattern in known)
    token = {"token": first_token()} if is_deep else {}
    return {"flow": flow(known), **token, **({"begun": begun(known)} if known else {})}


def with_all(rows: "DataFrame") -> "DataFrame":
    """Add to rows with the columns of `of_frame` those that it left out."""
    default = {"token": F.col("flow"), "begun": F.lit(0).cast("bigint")}
    missing = {name: one for name, one in default.items() if name not in rows.columns}
    return rows.withColumns(missing) if missing else rows


def flow(known: Patterns) -> "Column":
    """Return the number of a frame's flow: its first token where no filter looks deeper at such a frame."""
    by_length: dict[int, list[Sequence[int]]] = defaultdict(list)
    for pattern in known:
        if len(pattern) > 1:
            by_length[len(pattern)].append(pattern)
    if not by_length:
        return first_token()
    heads = [
        F.when(reduce(or_, map(begins, some)), F.xxhash64(F.slice("tokens", 1, length))).otherwise(F.lit(0))
        for length, some in sorted(by_length.items())
    ]
    is_deep = reduce(or_, (head != 0 for head in heads))
    return F.when(is_deep, F.xxhash64(*heads)).otherwise(first_token())
