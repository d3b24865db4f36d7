from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bridges.support import PtyPair


@pytest.fixture
def line(tmp_path: Path) -> Iterator[PtyPair]:
    """A pseudo-terminal whose slave is named like a device."""
    pair = PtyPair(tmp_path / "ttyTEST")
    yield pair
    pair.close()
