"""Fixtures that all tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path for a local socket (107 bytes is the kernel's limit)."""
    return tmp_path_factory.mktemp("s") / "s"
