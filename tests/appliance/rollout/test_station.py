"""A step of a roll-out on a gateway: a process that does not answer is named, with the reason."""

import socket
import threading
from pathlib import Path

import pytest

from appliance.local.places import runtime_directory
from appliance.rollout.station import Station


def test_why_there_is_no_status_of_a_process_is_said(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_path.parent))
    there = runtime_directory() / "plant" / "gw-a"
    there.mkdir(parents=True)
    killed, ends = there / "status-a.sock", there / "status-b.sock"
    with socket.socket(socket.AF_UNIX) as left, socket.socket(socket.AF_UNIX) as listener:
        left.bind(str(killed))  # and nobody listens
        listener.bind(str(ends))
        listener.listen()
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        word, line = Station(str(tmp_path / "plant.yaml"), "gw-a").health()
        thread.join()
    assert word == "absent"
    assert line == f"no process of gw-a answers here; {ends}: its process ended, or is too busy to answer"
