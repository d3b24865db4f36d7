"""The files of a capture in an object store, by URL (`s3://BUCKET/PREFIX`). Needs pyarrow.

Every function raises `CaptureError` if the store does not answer, or refuses our credentials.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from capture import files
from capture.files import CAPTURE, DELTA_LOG, FILE_SUFFIX, NAMES
from capture.schema import DATE
from pipeline.input.span import WHOLE, Span

if TYPE_CHECKING:
    from capture.stores import Store

STORES: Final = ("s3://", "s3a://")
"""The object stores that we look into ourselves; not into hdfs:// and others."""


class Listing(NamedTuple):
    """Names of capture files, relative to the URL, and their sizes in bytes. `is_logged`: a Delta log names
    them, so another program may have rewritten some."""

    sizes: dict[str, int]
    is_logged: bool


def is_delta(url: str) -> bool:
    """Return whether the URL is of a Delta table."""
    from capture.stores import store_of

    return bool(store_of(url).sizes(DELTA_LOG))


def listing(url: str, span: Span = WHOLE) -> Listing:
    """List the capture files that may have rows of a span. Only directories of its days are looked into."""
    from capture.stores import store_of

    is_logged = is_delta(url)
    found = files.logged(url) if is_logged else dict(_below(store_of(url), span))
    return Listing({name: found[name] for name in sorted(found) if _is_of(name, span)}, is_logged)


def _below(store: "Store", span: Span) -> Iterator[tuple[str, int]]:
    """Yield the files of the days of a span, and their sizes. The URL may be of a recorder's directory."""
    top = store.folders()
    days = store.folders(CAPTURE) if CAPTURE in top else top
    for day in days:
        if day.rpartition("/")[2].startswith(f"{DATE}=") and span.has_day(day.rpartition("=")[2]):
            yield from store.below(day).items()


def _is_of(name: str, span: Span) -> bool:
    path = Path(name)
    return path.suffix == FILE_SUFFIX and files.is_in_place(path) and span.has(path)


def beside(url: str) -> list[str]:
    """Return the lines of all files of names beside a capture."""
    from capture.stores import store_of

    store = store_of(url)
    found = [f"{NAMES}/{name}" for name in store.sizes(NAMES) if name.endswith(".txt")]
    return [line for name in found for line in _lines(store, name)]


def lines(url: str) -> list[str]:
    """Return the lines of a file. They are none if there is no such file."""
    from capture.stores import store_of

    place, mark, query = url.partition("?")
    directory, _, name = place.rpartition("/")
    store = store_of(f"{directory}{mark}{query}")
    return _lines(store, name) if name in store.sizes("") else []


def _lines(store: "Store", name: str) -> list[str]:
    with store.opened(name) as file:
        text: bytes = file.read()
    return text.decode(errors="replace").splitlines()
