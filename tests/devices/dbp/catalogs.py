"""Names that tests with a running catalog share; the fixture `start` makes one."""

from collections.abc import Callable
from typing import Final

from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.service import Catalog

HOST: Final = "127.0.0.1"
FAST: Final = Bounds(interval_s=0.05, interval_min_s=0.05)
"""Bounds of a catalog that notices a silent service within a test."""
Start = Callable[..., Catalog]
"""Starts a catalog: its port, `name`, `bounds`, `tries`, the `last` one, which it replaces, and settings of
its record."""


def port_of(catalog: Catalog) -> int:
    """Return the port of the catalog's first address."""
    return int(catalog.urls[0].rpartition(":")[2])
