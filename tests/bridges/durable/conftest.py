"""Gateways that end with their test."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.bridges.durable.gateways import Gateway, Make


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make gateways; the arguments are those of `Gateway`."""
    made = list[Gateway]()

    def one(*arguments: Any, **settings: Any) -> Gateway:
        made.append(Gateway(*arguments, **settings))
        return made[-1]

    yield one
    for gateway in made:
        gateway.close()
