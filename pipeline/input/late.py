"""Lateness: how long after its last row a file of a capture was there."""

from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from capture import files
from pipeline.input.read import is_remote
from pipeline.input.sound import newest_ns
from pipeline.input.span import Span

LATENESS: Final = {"gateway": str, "files": int, "median_s": float, "most_s": float, "latest_file": str}


def lateness(directory: str, span: Span) -> list[tuple[Any, ...]]:
    """Return the rows of `LATENESS`. None of a capture by URL: nobody here can read the times of its files.

    A file's time is when it was last written: one that was copied or compacted later is late by that.
    """
    if is_remote(directory):
        return []
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for path in filter(span.has, files.finished(Path(directory))):
        late_s = (path.stat().st_mtime_ns - newest_ns(path)) / 1e9
        found[files.gateway_of(path)].append((late_s, path.name))
    return [(gateway, len(some), *_summed(some)) for gateway, some in sorted(found.items())]


def _summed(some: list[tuple[float, str]]) -> tuple[float, float, str]:
    most_s, name = max(some)
    return round(median(late_s for late_s, _ in some), 3), round(most_s, 3), name
