"""Tables of tests with a row for each kind of medium or protocol.

A test that holds one ends in `has_each_medium` or `has_each_protocol`: the pages for who adds a kind say so.
"""

from collections.abc import Iterable


def has_each(table: str, keys: Iterable[str], kinds: Iterable[str]) -> None:
    """Fail unless the table of a test, by its name, has a row for each of these kinds, and for no other."""
    rows, wanted = set(keys), set(kinds)
    lacking, foreign = sorted(wanted - rows), sorted(rows - wanted)
    assert not lacking, f"{table} lacks a row for {', '.join(lacking)}"
    assert not foreign, f"{table} has a row for {', '.join(foreign)}, which it is not about"
