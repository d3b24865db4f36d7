"""Modules that are loaded when something of theirs is first used, for memory.

OpenSSL takes 6 MiB of each process that loads it, and few gateways use TLS or keys; but asyncio imports it.
`inspect`, with the grammar of Python behind it, takes 0.7 MiB, and the names of all locales 0.2 MiB.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

_OF_ASYNCIO: Final = ("ssl", "asyncio.sslproto", "inspect", "locale")
_LIBYAML: Final = "yaml.cyaml"
_IS_COROUTINE: Final = 0x80  # inspect.CO_COROUTINE


class Late(ModuleType):
    """A module's place, until a program uses something of it: then the module is imported.

    Several threads may do so at once, as with any import.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # an import from it asks whether it is a package, and none is
            raise AttributeError(name)
        self.leave()
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found

    def leave(self) -> None:
        """Let imports find the module itself from now on. Idempotent."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


@contextmanager
def placed(*names: str) -> Iterator[dict[str, Late]]:
    """Yield the places that imports find meanwhile of modules, of those that are not there yet."""
    places = {name: Late(name) for name in names if name not in sys.modules}
    sys.modules.update(places)
    try:
        yield places
    finally:
        for place in places.values():
            place.leave()


class Hidden:
    """A finder that lets imports of one module fail, while it is the first in `sys.meta_path`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name == self._name:
            raise ModuleNotFoundError(f"{name} is not used here", name=name)


@contextmanager
def hidden(name: str) -> Iterator[None]:
    """Hide a module in the block, from who can do without it."""
    finder = Hidden(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def import_asyncio() -> None:
    """Import asyncio and dataclasses without what they seldom use, which they load late then.

    Call this before other imports.
    """
    if "asyncio" in sys.modules:
        return
    with placed(*_OF_ASYNCIO) as places:
        if "inspect" in places:
            vars(places["inspect"])["iscoroutinefunction"] = is_coroutine_function
        import_module("dataclasses")
        import_module("asyncio").sslproto = sys.modules["asyncio.sslproto"]  # type: ignore[attr-defined]


def is_coroutine_function(function: Any) -> bool:
    """Tell whether `async def` made a function. Each handler of a signal is asked so, by asyncio."""
    plain = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(plain, FunctionType) and not vars(plain):
        return bool(plain.__code__.co_flags & _IS_COROUTINE)
    return bool(import_module("inspect").iscoroutinefunction(function))


def import_yaml() -> None:
    """Import yaml without its binding of libyaml, which is there once something of it is asked for."""
    if "yaml" in sys.modules:
        return
    with placed(_LIBYAML) as places:
        vars(places[_LIBYAML])["__all__"] = ()
        vars(import_module("yaml"))["__getattr__"] = _of_libyaml


def _of_libyaml(name: str) -> Any:
    """Return what the binding of libyaml adds to yaml: all its names begin with C, as `CSafeLoader`."""
    if name.startswith("C"):
        with suppress(ImportError):
            return getattr(import_module(_LIBYAML), name)
    raise AttributeError(f"module 'yaml' has no attribute {name!r}")


def import_argparse() -> None:
    """Import argparse without gettext, which seeks translations of its words in files, and finds none."""
    with placed("gettext") as places:
        for place in places.values():
            vars(place).update(gettext=str, ngettext=lambda one, many, count: one if count == 1 else many)
        import_module("argparse")
