"""A fixture for the tests of the state."""

from collections.abc import Callable

import pytest

from tests.devices.syndication.fakes import FakeQuery


@pytest.fixture
def evaluations() -> Callable[[], int]:
    """The function returns how many evaluations there were since it was called last."""
    last = FakeQuery.evaluations

    def since() -> int:
        nonlocal last
        last, before = FakeQuery.evaluations, last
        return last - before

    return since
