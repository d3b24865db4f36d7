"""The version: what is installed says it, and a bare copy of the files still has a status."""

from importlib import metadata

import pytest

from appliance.version import version


def test_what_is_not_installed_has_no_version_and_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.version("buscoupler")

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    assert version.__wrapped__() == installed
    monkeypatch.setattr(metadata, "version", missing)
    assert version.__wrapped__() == "unknown"
