"""The files that a Delta log names: others may lie beside them, which are too old or not yet in the table.

Needs deltalake. Raises `LogError`.
"""

import os
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from capture.by_url import bare, settings


class LogError(ValueError):
    """A Delta log that cannot be read."""


def _opened(url: str) -> DeltaTable:
    if "://" not in url:
        return DeltaTable(url)
    return DeltaTable(bare(url), storage_options=settings(url))


def sizes(url: str) -> dict[str, int]:
    """Return the names of the files of a table, relative to it, and their sizes in bytes.

    Raises `LogError` for a log that cannot be read.
    """
    if "://" not in url:
        url = os.path.abspath(url)
    try:
        found = _opened(url).get_add_actions()
    except (DeltaError, OSError) as error:
        raise LogError(f"{url}: {str(error).splitlines()[0][:200]}") from error
    columns = (found.column(name) for name in ("path", "size_bytes"))
    return {unquote(path.as_py()): size.as_py() for path, size in zip(*columns, strict=True)}
