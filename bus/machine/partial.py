"""Files that are written first and then take the place of another.

The number of a process is no name of its own: each container begins to count at 1, and two of them may write
into one directory.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Final

ABANDONED_S: Final = 86_400.0
"""The time since it was last written after which such a file is that of a process that was killed."""
_NAME_CHARS: Final = 40
_OWN_BYTES: Final = 6


def partial_of(path: Path) -> Path:
    """Return the path of a file beside `path` that nobody else writes, and delete what was abandoned there.

    Its name begins with a dot and ends with `.tmp`.
    """
    start = f".{path.name[:_NAME_CHARS]}."
    for left in path.parent.glob(f"{escape(start)}{2 * _OWN_BYTES * '[0-9a-f]'}.tmp"):
        with suppress(OSError):  # another process has deleted it, or we may not
            if time.time() - left.lstat().st_mtime > ABANDONED_S:
                left.unlink()
    return path.with_name(f"{start}{os.urandom(_OWN_BYTES).hex()}.tmp")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a file to write, which is at `path` once the block has ended without an error.

    With one it is deleted: tries that fail do not fill the disk. Raises `OSError`.
    """
    partial = partial_of(path)
    try:
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
