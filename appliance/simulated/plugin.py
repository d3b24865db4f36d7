"""The plugin of pytest: `plant(FILE)` is a plant in virtual or real time, which ends with the test.

A test names it: `pytest_plugins = ["appliance.simulated.plugin"]`. It is no entry point `pytest11`: for
such a one pytest loads every module of the distribution by its own loader, in every run.
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
    """Return a function: `plant(file, seed=0, real=False)` runs a topology, in virtual or `real` time.

    A relative path begins at the directory of the test's file.
    """
    from appliance.simulated.plant import SimulatedPlant
    from appliance.simulated.real import RealPlant

    with ExitStack() as stack:

        def made(file: str | Path, seed: int = 0, real: bool = False) -> "SimulatedPlant":
            one = (RealPlant if real else SimulatedPlant)(request.path.parent / file, seed)
            stack.callback(one.close)
            return one

        yield made
