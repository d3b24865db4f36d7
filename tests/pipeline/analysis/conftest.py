"""A planted capture whose files land in what is watched."""

from pathlib import Path

import pytest

from tests.rigs import planted


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a capture of 9,000 rows, without takeovers."""
    directory = tmp_path_factory.mktemp("whole")
    planted.generate(directory, planted.Plan(rows=9_000, sensors=20, takeovers=0, repeated=0.0))
    return directory
