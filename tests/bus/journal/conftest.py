import pytest

from tests.bus.journal.support import KIB


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.journal.journal.SEGMENT_BYTES", (4 * KIB, 4 * KIB))
