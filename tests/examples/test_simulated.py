"""The example of a user's tests runs as a user runs it."""

import os
import subprocess
import sys

from tests.helpers import ROOT
from tests.helpers.ports import free_port


def test_the_users_tests_pass() -> None:
    words = ["-p", "no:cacheprovider", "-n", "0"]
    ports = {"BROKER_PORT": str(free_port()), "HALL_PORT": str(free_port())}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "examples/simulated"],
        cwd=ROOT, env=os.environ | ports, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
