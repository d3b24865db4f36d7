"""A plain name for a path that a library would take for a pattern or a URL.

Sail reads `[1]` and `{a,b}` in a path as patterns, and takes no newline. deltalake takes no newline and no
backslash either, and decodes `%20`; it follows links to the end, so a link does not help it.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bus.machine.scratch import Scratch

_MEANT: Final = frozenset("[]{}*?")
_DECODED: Final = re.compile(r"\\|%[0-9A-Fa-f]{2}")


def is_plain(path: str) -> bool:
    """Return whether every library takes a path as it is."""
    return path.isprintable() and _MEANT.isdisjoint(path)


@contextmanager
def plainly(path: str) -> Iterator[str]:
    """Yield a path that leads to a directory of this machine, by a link if its own is not plain.

    The link lasts as long as the block. Raises `OSError` if it cannot be made.
    """
    if "://" in path or is_plain(os.path.abspath(path)):
        yield path
        return
    with Scratch(place=_directory()) as made:
        link = Path(made, "path")
        link.symlink_to(os.path.abspath(path))
        yield str(link)


def takes_no_delta(path: str) -> bool:
    """Return whether deltalake would look for the table of a path somewhere else, or fail."""
    found = os.path.realpath(path)
    return "://" not in path and not (found.isprintable() and _DECODED.search(found) is None)


def _directory() -> str | None:
    """Return a directory for links that is plain itself; None for the usual one."""
    return None if is_plain(tempfile.gettempdir()) else "/tmp"
