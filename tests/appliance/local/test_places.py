"""Where the processes of this machine are found."""

import os
from pathlib import Path

import pytest

from appliance.local.places import runtime_directories, runtime_directory


def test_a_service_of_systemd_has_a_directory_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    assert runtime_directory() == tmp_path / f"buscoupler-{os.geteuid()}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to write below /run")
def test_root_finds_services_in_their_directories() -> None:
    service = Path(f"/run/bc-test-{os.getpid()}")
    directory = service / "buscoupler-0"
    directory.mkdir(parents=True, mode=0o700)
    try:
        assert directory in runtime_directories()
    finally:
        directory.rmdir()
        service.rmdir()
