"""The import of python-can without the parts that a gateway does not use: its formats of log files.

These, with SQLite and more, take 2.5 MiB of memory. A program that imports `can.io` itself still gets them.
"""

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from bridges.media.can.opening import bound, opening
from bridges.media.selecting import unbound

if TYPE_CHECKING:
    from can import BusABC

_FORMATS: Final = "can.io"


class _Without(ModuleType):
    """A stand-in for `can.io` while python-can is imported, which takes names from there and uses none."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def python_can() -> ModuleType:
    """Return the package `can`. Raises `ModuleNotFoundError` if it is not installed."""
    if "can" in sys.modules:
        return import_module("can")  # which waits until another thread has imported it
    stand_in = sys.modules.setdefault(_FORMATS, _Without(_FORMATS))
    try:
        can = import_module("can")
        logging.getLogger("can").setLevel(logging.CRITICAL)  # it logs lines, with stacks, by what it reads
        return can
    finally:
        if sys.modules.get(_FORMATS) is stand_in:
            del sys.modules[_FORMATS]


def open_bus(interface: str, **settings: Any) -> "BusABC":
    """Open a bus of python-can, which works with many descriptors too. Raises what its driver raises."""
    can = python_can()
    package, _ = can.interfaces.BACKENDS[interface]
    import_module(package)
    for library in (package, "serial"):
        unbound(library)
    bound(package)
    with opening():
        # ignore_config: settings come from the topology, not from configuration files in the home directory
        bus: BusABC = can.Bus(interface=interface, ignore_config=True, **settings)
    return bus
