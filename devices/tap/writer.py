"""The tap's writer: a process that takes records off the ring and writes them, in spare processor time.

`python -m devices.tap.writer SETTINGS`, with the ring's descriptor inherited. The recorder writes to its
input how far the ring is filled, a u64 at a time. When the input ends, the writer writes what is left in the
ring, and ends. It reports its state on its output, a JSON object a line. It ignores signals for the gateway.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from itertools import groupby
from pathlib import Path
from random import uniform
from typing import NamedTuple

import pyarrow as pa

from bus.backoff import Backoff
from bus.errors import words_of
from bus.machine.permissions import check_access
from capture.files import day_of, days_directory, journal_directory, name_of
from capture.schema import (
    META_BOOT,
    META_DAY,
    META_GATEWAY,
    META_RECORDER,
    META_TOPOLOGY,
    META_VERSION,
    VERSION,
    Kind,
    arrow_schema,
)
from devices.child import hide_pandas
from devices.tap.finisher import Finisher
from devices.tap.journal import Journal, Vanished, resume
from devices.tap.names import NamesReader
from devices.tap.retention import Limits
from devices.tap.ring import Record, Ring
from devices.tap.rows import Made, Rows

_DAY_NS = 86_400 * 10**9
_RETRY_MIN_S, _RETRY_MAX_S = 0.1, 10.0
_GIVE_UP_S = 5.0  # how long rows are tried on a full disk after the gateway has ended
_STATUS_S = 0.5
_MARK_BYTES = 8


class Settings(NamedTuple):
    """The recorder's settings for its writer; times in seconds.

    `descriptor` is the ring's, `names` that of `devices.tap.names.NamesWriter`.
    """

    gateway: str
    recorder: str
    directory: str
    boot: int
    descriptor: int
    ring_bytes: int
    names: int
    file_bytes: int = 64 << 20
    file_s: float = 60.0
    keep_bytes: int = 1 << 30
    keep_s: float = 0.0
    flush_s: float = 1.0
    flush_rows: int = 10_000
    pattern: tuple[int, ...] = ()
    idle: bool = True


class Writer:
    """A run of the process: it takes, decodes and writes records, and releases those that are in a file."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = Path(settings.directory)
        self.ring = Ring(settings.descriptor, settings.ring_bytes)
        self.head = 0
        self._record_under("", 0)
        self.next_number = 0
        self.pending: list[Record] = []
        self.pending_rows = self.pending_bytes = 0
        self.pending_s = 0.0
        self.journal: Journal | None = None
        self.day = -1
        self.journal_s = 0.0
        self.written = 0
        self.fault = ""
        self.ended = False
        self.gave_up = False
        self.finisher = _finisher(settings)
        self.told, self.told_s = "", 0.0

    def run(self) -> int:
        """Run until the input ends. Return 0, or 1 if rows were given up."""
        if not self.resume():
            return 1
        self.finisher.start()
        self.finisher.wake.set()
        while not self.ended:
            self._listen(self._pause_s())
            self.take()
            self._tell()
        self.take()
        self.rotate()
        self.finisher.ending = True
        self.finisher.wake.set()
        self.finisher.join()
        self._tell(now=True)
        return int(bool(self.pending))

    def resume(self) -> bool:
        """Continue after the rows of an earlier run, once they can be read and more can be written.

        Return False if input ends.
        """
        settings, pauses = self.settings, Backoff(_RETRY_MIN_S, _RETRY_MAX_S, uniform)
        while not self.ended:
            try:
                self._make_place()
                found = resume(self.root, settings.gateway, settings.boot)
            except OSError as error:
                self.fault = words_of(error)
                self._tell(now=True)
                self._listen_on(pauses.next_s())
            else:
                self.fault = ""
                self.next_number, row = max(self.ring.resume, (found.record, found.row))
                self._record_under(found.topology, row)
                return True
        return False

    def _make_place(self) -> None:
        """Make the directory. Raises `OSError` if nothing can be written there, before anything comes."""
        place = journal_directory(self.root, self.settings.gateway)
        place.mkdir(parents=True, exist_ok=True)
        check_access(place, os.W_OK | os.X_OK)

    def _pause_s(self) -> float:
        """Return the seconds until the next timed work: a flush, a new file or a report."""
        now_s, until = time.monotonic(), [_STATUS_S]
        if self.pending:
            until.append(self.pending_s + self.settings.flush_s - now_s)
        if self.journal is not None:
            until.append(self.journal_s + self.settings.file_s - now_s)
        return max(0.0, min(until))

    def _listen(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for a notice of how far the ring is filled, or for the end of the input."""
        if not select.select([0], [], [], timeout_s)[0]:
            return
        words = os.read(0, 1 << 16)
        self.ended = not words
        self.head = int.from_bytes(words[-_MARK_BYTES:], sys.byteorder) if words else self.ring.written()

    def take(self) -> None:
        """Take all records, and write them when there are enough or the oldest has waited `flush_s`."""
        if self.gave_up:
            return
        for record in self.ring.records(self.head):
            if record.number >= self.next_number and not self._took(record):
                return
            if self._enough() and not self._flush():
                return
        if not self.pending:  # there may have been a filler or a topology
            self.ring.release(self.next_number, self.rows.cap_seq)
        elif self.ended or time.monotonic() - self.pending_s >= self.settings.flush_s:
            self._flush(calm=True)
        if self.journal is not None and time.monotonic() - self.journal_s >= self.settings.file_s:
            self.rotate()

    def _took(self, record: Record) -> bool:
        """Hold a record until it is written, or switch to its topology. Return False if it gave up."""
        if record.kind != Kind.TOPOLOGY:
            self._hold(record)
            return True
        topology = bytes(record.data).decode()
        if topology != self.topology:  # else it is told again, because a writer was lost
            if self.pending and not self._flush():
                return False
            self.rotate()  # a file is recorded under one topology
            self._record_under(topology, self.rows.cap_seq)
        self.next_number = record.number + 1
        return True

    def _record_under(self, topology: str, row: int) -> None:
        """Let rows from the number `row` on be recorded under a topology (JSON); "" for none."""
        settings, more = self.settings, {META_TOPOLOGY: topology} if topology else {}
        self.topology, self.schema = topology, arrow_schema({**_metadata(settings), **more})
        self.rows = Rows(self.schema, settings.boot, row, settings.pattern)

    def _hold(self, record: Record) -> None:
        if not self.pending:
            self.pending_s = time.monotonic()
        self.pending.append(record)
        self.pending_rows += record.messages
        self.pending_bytes += len(record.data)

    def _enough(self) -> bool:
        settings = self.settings
        return self.pending_rows >= settings.flush_rows or self.pending_bytes >= settings.ring_bytes // 8

    def _flush(self, calm: bool = False) -> bool:
        """Write the pending records, in a new file for each day. Return False if the writer gave up.

        They stay pending until the disk takes them. `calm`: return free memory to the system.
        """
        for day, run in groupby(self.pending, lambda record: record.ts_ns // _DAY_NS):
            records = list(run)
            if day != self.day:
                self.rotate()
            self.day = day
            made = self.rows.of(records)
            if made and not self._store(made):
                return False
            self.ring.note(records[-1].number + 1, self.rows.cap_seq)  # its file may be finished from now on
        self.next_number = self.pending[-1].number + 1
        self.pending = []
        self.pending_rows = self.pending_bytes = 0
        self.ring.release(self.next_number, self.rows.cap_seq, give_back=calm)
        if calm:
            pa.default_memory_pool().release_unused()
        if self.journal is not None and self.journal.size_bytes >= self.settings.file_bytes:
            self.rotate()
        return True

    def _store(self, made: list[Made]) -> bool:
        """Write batches to the journal, and retry while the disk is full. Return False if it gave up."""
        added, give_up_s, pauses = False, None, Backoff(_RETRY_MIN_S, _RETRY_MAX_S, uniform)
        while True:
            try:
                journal = self._opened(made[0].batch["cap_seq"][0].as_py())
                if not added:
                    for one in made:
                        journal.add(*one)
                    added = True
                journal.sync()
            except OSError as error:
                if isinstance(error, Vanished):
                    self._leave()
                    added = False
                self.fault = words_of(error)
                self._tell(now=True)
                if self.ended:
                    give_up_s = give_up_s or time.monotonic() + _GIVE_UP_S
                    if time.monotonic() > give_up_s:
                        self.gave_up = True
                        return False
                    time.sleep(pauses.next_s())
                else:
                    self._listen_on(pauses.next_s())
            else:
                self.fault = ""
                self.written += sum(one.batch.num_rows for one in made)
                return True

    def _listen_on(self, pause_s: float) -> None:
        """Wait `pause_s` seconds, or until the input ends. Take no records meanwhile."""
        end_s = time.monotonic() + pause_s
        while not self.ended and (left_s := end_s - time.monotonic()) > 0:
            self._listen(left_s)

    def _opened(self, first_row: int) -> Journal:
        if self.journal is None:
            settings = self.settings
            directory = journal_directory(self.root, settings.gateway)
            day = {META_DAY: day_of(self.day * _DAY_NS)}
            schema = self.schema.with_metadata({**self.schema.metadata, **day})
            self.journal = Journal(directory, name_of(settings.boot, first_row), schema)
            self.journal_s = time.monotonic()
        return self.journal

    def rotate(self) -> None:
        """Close the open journal, which then becomes a capture file."""
        if self.journal is not None:
            try:
                self.journal.check()
            except OSError as error:
                self.fault = words_of(error)
                self._tell(now=True)
                self.fault = ""
            self._leave()
            self.finisher.wake.set()

    def _leave(self) -> None:
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    def _tell(self, now: bool = False) -> None:
        """Report the state as a line. A report that the pipe cannot take is dropped."""
        fault = self.fault or self.finisher.fault
        state = {
            "state": "waiting" if fault else "up",
            "fault": fault,
            "written": self.written,
            "files": self.finisher.files,
            "deleted": self.finisher.deleted,
        }
        words = json.dumps(state)
        if words == self.told or (not now and time.monotonic() - self.told_s < _STATUS_S):
            return
        self.told, self.told_s = words, time.monotonic()
        with contextlib.suppress(OSError):
            os.write(1, words.encode() + b"\n")


def _finisher(settings: Settings) -> Finisher:
    root, limits = Path(settings.directory), Limits(settings.keep_bytes, settings.keep_s)
    names = NamesReader(settings.names, days_directory(root), settings.gateway)
    return Finisher(root, settings.gateway, limits, names)


def _metadata(settings: Settings) -> dict[str, str]:
    return {
        META_VERSION: str(VERSION),
        META_GATEWAY: settings.gateway,
        META_BOOT: str(settings.boot),
        META_RECORDER: settings.recorder,
    }


def main(words: list[str]) -> int:
    """Run the program. `words` has one element, the settings in JSON."""
    hide_pandas()
    settings = Settings(**json.loads(words[0]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if settings.idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.set_blocking(1, False)
    return Writer(settings).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
