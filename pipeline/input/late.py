"""Lateness: how long after its last row a file of a capture was there."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from capture import files
from pipeline.input.span import Span

LATENESS: Final = {"gateway": str, "files": int, "median_s": float, "most_s": float, "latest_file": str}


def lateness(
    newest_ns: Mapping[Path, int], span: Span, recorded: Collection[tuple[str, int]]
) -> list[tuple[Any, ...]]:
    """Return the rows of `LATENESS`, of the files of a span: `newest_ns` has the time of the newest row of
    each (`pipeline.input.sound.look`). There are none of a capture by URL, where nobody here looks.

    `recorded` are the runs of recorders, by gateway and boot: a log of the field that was imported is as old
    as it is, and late for nothing.

    A file's time is when it was last written: one that was copied or compacted later is late by that.
    """
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for path, row_ns in newest_ns.items():
        if span.has(path) and (files.gateway_of(path), int(files.boot_of(path))) in recorded:
            late_s = (path.stat().st_mtime_ns - row_ns) / 1e9
            found[files.gateway_of(path)].append((late_s, path.name))
    return [(gateway, len(some), *_summed(some)) for gateway, some in sorted(found.items())]


def _summed(some: list[tuple[float, str]]) -> tuple[float, float, str]:
    most_s, name = max(some)
    return round(median(late_s for late_s, _ in some), 3), round(most_s, 3), name
