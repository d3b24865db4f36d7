"""The run of a recorder whose rows the CAN frames of a file are. A log that has grown is known by its frames.

Nothing in a log says which one it is, and what stands at its beginning may change: short logs grow, and the
head of a BLF counts what is in it. Needs numpy and pyarrow.
"""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from capture import frames as can
from capture.files import FILE_SUFFIX, days_directory, gateway_of, listed, opened
from capture.frames import Frames
from capture.schema import META_RECORDER, Kind, arrow_schema

RECORDER: Final = "import"
STEP_NS: Final = 1_000_000
"""Runs of files begin in the ms of their first frame, each at a ns of its own."""
_COMPARED: Final = ["ts_ns", "peer", "dir", "payload"]
_ROWS: Final = 1 << 16


def run_of(frames: Frames, root: Path, gateway: str, ns: int) -> int:
    """Return the run of a file that begins with `frames`: the one below `root` with the same frames, or a new
    one, if possible at the ns that is given. Raises `CaptureError`."""
    begin = max(0, int(frames.ts_ns[0]) // STEP_NS * STEP_NS)
    found = _runs(root, gateway, begin)
    # The others say nothing of a beginning.
    whole = {run: files for run, files in found.items() if 0 in files}
    if whole:
        rows = can.rows(frames, "", 0, 0, arrow_schema({})).select(_COMPARED)
        for run, files in whole.items():
            if all(_are_alike(path, rows) for first, path in files.items() if first < len(frames)):
                return run
    room = min(STEP_NS, (1 << 63) - begin)  # a run is an i64, as its times are
    ns %= room
    while begin + ns in whole:
        ns = (ns + 1) % room
    return begin + ns


def _runs(root: Path, gateway: str, begin: int) -> dict[int, dict[int, Path]]:
    """Return the files of the runs that begin in a ms, by the numbers of their first rows."""
    days, found = days_directory(root), dict[int, dict[int, Path]]()
    for path in listed(days) if days.is_dir() else ():
        run, _, first = path.name.removesuffix(FILE_SUFFIX).partition("-")
        is_ours = gateway_of(path) == gateway and run.isdigit() and first.isdigit()
        if is_ours and begin <= int(run) < begin + STEP_NS:
            found.setdefault(int(run), {})[int(first)] = path
    return found


def _are_alike(path: Path, rows: pa.RecordBatch) -> bool:
    """Return whether an import made a file of such rows, as far as they go."""
    with opened(path) as file:
        if (file.metadata.metadata or {}).get(META_RECORDER.encode()) != RECORDER.encode():
            return False
        for batch in file.iter_batches(_ROWS, columns=["kind", "cap_seq", *_COMPARED]):
            within = pc.and_(pc.equal(batch["kind"], int(Kind.WIRE)), pc.less(batch["cap_seq"], len(rows)))
            theirs = batch.filter(within)
            if not rows.take(theirs["cap_seq"]).equals(theirs.select(_COMPARED)):
                return False
            if not len(theirs):
                break
    return True
