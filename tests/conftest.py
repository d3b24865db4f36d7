"""Fixtures that all tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path for a local socket, because the kernel's limit is 107 bytes."""
    return tmp_path_factory.mktemp("s") / "s"
