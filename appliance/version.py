"""The version of the program, for people and for status."""

from functools import cache


@cache
def version() -> str:
    """Return the installed version; "unknown" where the program runs from files that were only copied."""
    from importlib import metadata  # late: it takes longer than all other imports

    try:
        return metadata.version("buscoupler")
    except metadata.PackageNotFoundError:
        return "unknown"
