"""The query language: predicates over the metadata of a producer (docs/query.md).

`parse` turns a text into a `Query`, and `selection` a text with `select distinct` into a `Selection`;
`subscription` accepts both. The `grammar` makes a `tree`, in which equal queries are equal; `evaluate` makes
a function of it; `errors` has the error for a wrong text, and its position.
"""

from devices.syndication.query.errors import QueryError
from devices.syndication.query.parse import Query, Selection, parse, prepare, selection, subscription
from devices.syndication.query.tree import Value

__all__ = ["Query", "QueryError", "Selection", "Value", "parse", "prepare", "selection", "subscription"]
