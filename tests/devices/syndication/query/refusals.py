"""What a wrong query is told."""

import pytest

from devices.syndication.query import QueryError, parse


def said(text: str) -> str:
    """Return why a query is refused. It begins with the place."""
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"character {caught.value.position}: ")
    return str(caught.value)
