"""What all tests of the catalog begin with."""

import pytest

from tests.devices.dbp.catalog.room import Room


@pytest.fixture
def room() -> Room:
    return Room()
