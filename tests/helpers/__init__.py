"""Helpers that tests of several packages share."""

import os
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]


CONNECT_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""By which pyspark knows that this process is a Connect client."""


def alone() -> dict[str, str]:
    """Return this process's environment without what tests with an engine left in it, for a child."""
    ours = ("PYSPARK_GATEWAY", CONNECT_MODE)
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
