"""Modules that are loaded when something of theirs is first used, for memory.

OpenSSL takes 6 MiB of each process that loads it, and few gateways use TLS or keys; but asyncio imports it.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

_OF_ASYNCIO: Final = ("ssl", "asyncio.sslproto")


class Late(ModuleType):
    """A module's place, until a program uses something of it: then the module is imported.

    Several threads may do so at once, as with any import.
    """

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def import_asyncio() -> None:
    """Import asyncio without its parts for TLS, which it loads late then. Call this before other imports."""
    if "asyncio" in sys.modules:
        return
    places = {name: Late(name) for name in _OF_ASYNCIO if name not in sys.modules}
    sys.modules.update(places)
    try:
        import_module("asyncio").sslproto = places["asyncio.sslproto"]  # type: ignore[attr-defined]
    finally:
        for name in places:
            del sys.modules[name]
