"""The fixtures of the clients' tests."""

from collections.abc import AsyncIterator

import pytest

from tests.bus.tmq.broker.broker_house import House


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    await house.close()
