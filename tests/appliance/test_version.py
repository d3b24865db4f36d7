"""The version: what is installed says it, and a bare copy of the files still has a status."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from appliance.version import version


def test_what_is_not_installed_has_no_version_and_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert version.__wrapped__() == metadata.version("buscoupler")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), str(tmp_path / "none")])
    assert version.__wrapped__() == "unknown"
