"""Makes capture files of journals. Needs pyarrow.

`python -m devices.tap.finish ROOT GATEWAY` does so for all of the gateway's journals that no process writes.
It prints JSON: the number of files, and the error or "". It is a process of its own because Arrow keeps
memory.
"""

import json
import os
import sys
from itertools import chain
from pathlib import Path

import pyarrow as pa

from bus.errors import words_about
from capture import parquet
from capture.batches import batches_of, day_recorded
from capture.files import UNFINISHED_SUFFIX, capture_file
from capture.schema import META_GATEWAY
from devices.child import hide_pandas
from devices.tap.journal import claimed, leftovers


def finish_all(root: Path, gateway: str) -> tuple[int, str]:
    """Make capture files of the gateway's closed journals. Return their number, and the first error or "".

    A journal of which no file can be made stays, and stops none of the others.
    """
    made, fault = 0, ""
    for path in leftovers(root, gateway):
        try:
            made += finish(root, path) is not None
        except Exception as error:
            fault = fault or words_about(path, error)
    return made, fault


def finish(root: Path, journal: Path) -> Path | None:
    """Make a capture file of a journal and delete the journal. Return None if it is empty or being written.

    Raises `OSError`; the journal then stays, and the unfinished file is deleted.
    """
    with claimed(journal) as file:
        return None if file is None or not os.fstat(file).st_nlink else _finish(root, journal)


def _finish(root: Path, journal: Path) -> Path | None:
    batches = (batch for batch, _ in batches_of(journal))
    first = next(batches, None)
    target = None if first is None else _target(root, first, journal.stem)
    if first is not None and target is not None and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{journal.stem}{UNFINISHED_SUFFIX}")
        try:
            parquet.write(aside, first.schema, chain([first], batches))
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)
        parquet.sync(target.parent)
    journal.unlink()
    return target


def _target(root: Path, first: pa.RecordBatch, name: str) -> Path:
    gateway = first.schema.metadata[META_GATEWAY.encode()].decode()
    return capture_file(root, day_recorded(first), gateway, name)


def main(words: list[str]) -> int:
    """Run the program. `words` are the root directory and the name of the gateway."""
    hide_pandas()
    print(json.dumps(finish_all(Path(words[0]), words[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
