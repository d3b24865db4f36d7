"""The benchmark of queries measures each of them."""

import re

import pytest

from benchmarks.queries import PRODUCERS, QUERIES, row
from devices.syndication.query import parse

pytest.importorskip("lark", reason="the extra syndication is not installed")
pytest.importorskip("re2", reason="the extra syndication is not installed")


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_has_a_row(name: str) -> None:
    assert re.fullmatch(rf"\| {name}( \| [\d,.]+){{4}} \|", row(name, QUERIES[name], 0.001))


def test_the_queries_match_some_producers() -> None:
    matches = parse(QUERIES["mixed"]).matches
    assert 0 < sum(map(matches, PRODUCERS)) < len(PRODUCERS)
