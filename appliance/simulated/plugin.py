"""The plugin of pytest: `plant(FILE)` is a plant in virtual time, which ends with the test.

pytest loads it in every run where the distribution is installed, so it imports nothing until a test asks.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from appliance.simulated.plant import SimulatedPlant


@pytest.fixture
def plant(request: pytest.FixtureRequest) -> "Iterator[Callable[..., SimulatedPlant]]":
    """Return a function: `plant(file, seed=0)` runs a topology in virtual time.

    A relative path begins at the directory of the test's file.
    """
    from appliance.simulated.plant import SimulatedPlant

    with ExitStack() as stack:

        def made(file: str | Path, seed: int = 0) -> "SimulatedPlant":
            one = SimulatedPlant(request.path.parent / file, seed)
            stack.callback(one.close)
            return one

        yield made
