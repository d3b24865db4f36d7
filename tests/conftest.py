"""Fixtures that all tests share, and the marker of those that NNG's WebSocket listener may abort."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

WEBSOCKET = re.compile(r"\[(?:[^\]]*-)?wss?(?:-[^\]]*)?\]$")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what listens on a WebSocket by a parameter `ws` or `wss` (see tests/test_websocket.py)."""
    for item in items:
        if WEBSOCKET.search(item.nodeid):
            item.add_marker("websocket")


@pytest.fixture(scope="session", autouse=True)
def run_directory() -> Iterator[None]:
    """A runtime directory for the processes of this run, which are then no neighbours of other runs."""
    before, directory = os.environ.get("XDG_RUNTIME_DIR"), tempfile.mkdtemp(prefix="bc-tests-")
    os.environ["XDG_RUNTIME_DIR"] = directory
    yield
    shutil.rmtree(directory, ignore_errors=True)
    os.environ.pop("XDG_RUNTIME_DIR")
    if before is not None:
        os.environ["XDG_RUNTIME_DIR"] = before


@pytest.fixture
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path for a local socket, because the kernel's limit is 107 bytes."""
    return tmp_path_factory.mktemp("s") / "s"
