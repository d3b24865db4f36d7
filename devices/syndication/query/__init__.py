"""The query language: predicates over the metadata of a producer (docs/query.md).

`parse` turns a text into a `Query`, and `selection` one with `select distinct` into a `Selection`;
`subscription` takes both. The `grammar` makes a `tree`, in which equal queries are equal; `evaluate` makes a
function of it; `errors` says what is wrong with a text, and where.
"""

from devices.syndication.query.errors import QueryError
from devices.syndication.query.parse import Query, Selection, parse, prepare, selection, subscription
from devices.syndication.query.tree import Value

__all__ = ["Query", "QueryError", "Selection", "Value", "parse", "prepare", "selection", "subscription"]
