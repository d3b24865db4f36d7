"""The files of the status page and for monitoring, which are package data."""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """Return the text of a file of this package, such as `drawing.css`."""
    return files(__package__).joinpath(name).read_text("utf-8")
