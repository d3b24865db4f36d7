"""Journals of a recorder, written row by row."""

from pathlib import Path

import pyarrow as pa

from capture.files import journal_directory, name_of
from capture.schema import META_BOOT, META_GATEWAY, META_VERSION, VERSION, arrow_schema
from devices.tap.finish import finish
from devices.tap.journal import Journal

GATEWAY, BOOT = "gw-a", 1_780_000_000_000_000_000
SCHEMA = arrow_schema({META_VERSION: str(VERSION), META_GATEWAY: GATEWAY, META_BOOT: str(BOOT)})
COMMON = {
    "boot": BOOT,
    "kind": 0,
    "hub": "bus p",
    "bus": "p",
    "peer": "a",
    "dir": 0,
    "count": 1,
    "verdict": 0,
}


class Recording:
    """A journal of a recorder."""

    def __init__(self, root: Path, first: int = 0) -> None:
        self.root, self.number = root, first
        self.path = journal_directory(root, GATEWAY) / f"{name_of(BOOT, first)}.arrows"
        self._journal = Journal(self.path.parent, self.path.stem, SCHEMA)

    def add(self, count: int) -> None:
        rows = [{**COMMON, "cap_seq": self.number + n, "ts_ns": BOOT + n} for n in range(count)]
        self.number += count
        self._journal.add(pa.RecordBatch.from_pylist(rows, schema=SCHEMA), self.number)
        self._journal.sync()

    def finish(self) -> Path:
        self._journal.close()
        made = finish(self.root, self.path)
        assert made is not None
        return made
