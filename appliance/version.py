"""The version of the program, for people and for status."""

import sys
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """Return the installed version; "unknown" where the program runs from files that were only copied.

    It is in the name of the directory of the installation: `importlib.metadata` takes 1.5 MiB to say it.
    """
    found = (path for place in sys.path for path in Path(place).glob("buscoupler-*.dist-info"))
    return next((path.stem.partition("-")[2] for path in found), "unknown")
