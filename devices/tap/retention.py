"""Which finished segments go: the oldest, by what all take together and by age."""

import time
from pathlib import Path
from typing import NamedTuple

from capture.schema import CAPTURE, GATEWAY, SEGMENT_SUFFIX


class Limits(NamedTuple):
    """`keep_bytes` of finished segments of one gateway; `keep_s` since the last row; 0: without limit."""

    keep_bytes: int = 0
    keep_s: float = 0.0


class Segment(NamedTuple):
    path: Path
    size_bytes: int
    finished_s: float


def segments(root: Path, gateway: str) -> list[Segment]:
    """The finished ones of a gateway, oldest first."""
    found = []
    for path in sorted(
        (root / CAPTURE).glob(f"*/{GATEWAY}={gateway}/*{SEGMENT_SUFFIX}"), key=lambda path: path.name
    ):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found.append(Segment(path, status.st_size, status.st_mtime))
    return found


def expired(found: list[Segment], limits: Limits, now_s: float) -> list[Segment]:
    """Those that must go; the newest stays, however large it is."""
    excess = sum(segment.size_bytes for segment in found) - limits.keep_bytes if limits.keep_bytes else 0
    gone = []
    for segment in found[:-1]:
        if excess > 0 or (limits.keep_s and now_s - segment.finished_s > limits.keep_s):
            gone.append(segment)
            excess -= segment.size_bytes
    return gone


def retain(root: Path, gateway: str, limits: Limits) -> int:
    """Delete what must go, and day directories that are empty then. Returns how many files went."""
    gone = expired(segments(root, gateway), limits, time.time())
    for segment in gone:
        segment.path.unlink(missing_ok=True)
        for directory in (segment.path.parent, segment.path.parent.parent):
            try:
                directory.rmdir()
            except OSError:
                break
    return len(gone)
