"""The packages behind `buscoupler`, and a check that no foreign module hides one of them."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("bus", "bridges", "capture", "devices", "topologies", "pipeline", "appliance")
_HOME = Path(__file__).resolve().parents[1]


@cache
def check_packages() -> None:
    """Raise `ImportError` with the path of a foreign module that hides one of our packages.

    A script's own directory comes first in Python's search path, so a file `bus.py` there hides our package.
    """
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None:
            raise ImportError(f"the package {name!r} is missing: install buscoupler again")
        found = Path(spec.origin or next(iter(spec.submodule_search_locations or ()), name)).resolve()
        if found != _HOME / name / "__init__.py":
            raise ImportError(f"{found} hides the package {name!r} of buscoupler: rename that file or folder")
