"""A `select()` for libraries that know no other wait: it also takes descriptors above 1,023.

The call of the kernel ends with an error at those, for ever, and a gateway with many peers has them. poll(2)
has no such bound.
"""

import errno
import os
import select as system
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Final

_READABLE: Final = system.POLLIN | system.POLLHUP | system.POLLERR
_WRITABLE: Final = system.POLLOUT | system.POLLERR


def select(
    readers: Sequence[Any], writers: Sequence[Any], others: Sequence[Any], timeout_s: float | None = None
) -> tuple[list[Any], list[Any], list[Any]]:
    """Wait as `select.select` does, and return the same. Raises the same, but for large descriptors."""
    poll, wanted = system.poll(), dict[int, int]()
    for files, event in ((readers, system.POLLIN), (writers, system.POLLOUT), (others, system.POLLPRI)):
        for file in files:
            number = _number(file)
            wanted[number] = wanted.get(number, 0) | event
    for number, events in wanted.items():
        poll.register(number, events)
    found = dict(poll.poll(None if timeout_s is None else max(0.0, 1000 * timeout_s)))
    if any(event & system.POLLNVAL for event in found.values()):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return (
        _ready(readers, found, _READABLE),
        _ready(writers, found, _WRITABLE),
        _ready(others, found, system.POLLPRI),
    )


def _number(file: Any) -> int:
    number = file if isinstance(file, int) else file.fileno()
    if number < 0:
        raise ValueError("file descriptor cannot be a negative integer (-1)")
    return int(number)


def _ready(files: Sequence[Any], found: dict[int, int], events: int) -> list[Any]:
    return [file for file in files if found.get(_number(file), 0) & events]


_STAND_IN: Final = SimpleNamespace(**{**vars(system), "select": select})


def unbound(library: str) -> None:
    """Let a library use this `select`, as far as it is loaded."""
    for module in loaded(library):
        if vars(module).get("select") is system:
            vars(module)["select"] = _STAND_IN


def loaded(library: str) -> list[ModuleType]:
    """Return the module of that name, and those below it, as far as they are loaded."""
    return [module for name, module in list(sys.modules.items()) if f"{name}.".startswith(f"{library}.")]
