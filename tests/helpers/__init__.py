"""Helpers that tests of several packages share."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def alone() -> dict[str, str]:
    """Return this process's environment without the Java that tests of Spark left running, for a child."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
