"""The simulated run: ten services, two clients, one that leaves and one that comes."""

import subprocess
import sys

from tests.helpers import ROOT


def test_everybody_is_found_and_asked() -> None:
    script = ROOT / "examples/nodes/simulation.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )  # fmt: skip
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 10 + 10 + 10 + 1
    for client in ("Frodo", "Sam"):
        assert f"Mordor greets {client}" in lines[:20]
    assert "Mordor greets Frodo" not in lines[20:]
    assert "Dale greets Frodo" in lines[20:]
    assert lines[-1] == "Sam hears from Gondor: beacons are lit"
