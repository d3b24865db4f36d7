"""A simulated year of a recorder's directory: hourly files of a few gateways, put in place as recorders do.

What is hard for a watch is in it: numbers of rows that are missing, recorders that start again, files that
come a day late, and old days that retention deletes.
"""

import os
import shutil
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa

from bus.wire.pattern import token
from capture import parquet, schema
from capture.files import UNFINISHED_SUFFIX, capture_file, day_of, days_directory, name_of

DAY_H: Final = 24
START: Final = datetime(2025, 1, 1, tzinfo=UTC)
VALUE_MOST: Final = 30
"""One row of each file has this value; a rule above 29 raises an alert for it."""

_HOUR_NS: Final = 3_600 * 10**9
_SENSORS: Final = 20
_RESTART_D: Final = 40
_MISSED: Final = 5  # rows that each recorder misses in each day
_LATE_OF: Final = 101  # one file of so many comes a day late
_LONG_AGO_S: Final = 2 * 86_400.0


@dataclass
class _Recorder:
    """A gateway's recorder: its run, the next number of a row, and files that come late, by hour."""

    boot: int = 0
    number: int = 0
    late: dict[int, tuple[Path, Path]] = field(default_factory=dict)


class Year:
    """Puts the files of hours into a recorder's directory `root`, and deletes days older than `keep_days`."""

    def __init__(self, root: Path, gateways: int, rows: int, keep_days: int) -> None:
        """`rows` of each file."""
        self.root, self.rows, self.keep_days = root, rows, keep_days
        self.files = self.put_rows = 0
        self._recorders = {f"gw-{n}": _Recorder() for n in range(gateways)}
        days_directory(root).mkdir(parents=True)

    def put(self, hour: int) -> None:
        """Put the files of an hour of the year, and those that were due a day ago and come late."""
        if hour % DAY_H == 0:
            self._new_day(hour // DAY_H)
        for number, (gateway, recorder) in enumerate(self._recorders.items()):
            made = self._made(gateway, recorder, hour, number)
            if (hour + 37 * number) % _LATE_OF == 0:
                recorder.late[hour + DAY_H] = made
            else:
                self._place(*made)
            if hour in recorder.late:
                self._place(*recorder.late.pop(hour))

    def end(self) -> None:
        """Put what is still to come."""
        for recorder in self._recorders.values():
            for made in recorder.late.values():
                self._place(*made)
            recorder.late.clear()

    def _new_day(self, day: int) -> None:
        for number, recorder in enumerate(self._recorders.values()):
            recorder.number += _MISSED
            if (day + 7 * number) % _RESTART_D == 0 or day == 0:
                recorder.boot, recorder.number = _ns(day * DAY_H), 0
        for directory in days_directory(self.root).glob("date=*"):
            date = datetime.strptime(directory.name, "date=%Y-%m-%d").replace(tzinfo=UTC)
            age_days = (START + timedelta(days=day) - date).days
            if age_days > self.keep_days:
                shutil.rmtree(directory)
            elif age_days > 1:
                _age(directory)

    def _made(self, gateway: str, recorder: _Recorder, hour: int, number: int) -> tuple[Path, Path]:
        """Write a file aside. Return where it is, and where it belongs."""
        begin_ns = _ns(hour)
        path = capture_file(self.root, day_of(begin_ns), gateway, name_of(recorder.boot, recorder.number))
        partial = self.root / f".{gateway}-{path.stem}{UNFINISHED_SUFFIX}"
        table = self._table(gateway, recorder, begin_ns, hour + number)
        parquet.write(partial, table.schema, table.to_batches())
        recorder.number += self.rows
        return partial, path

    def _table(self, gateway: str, recorder: _Recorder, begin_ns: int, salt: int) -> pa.Table:
        words = {
            schema.META_VERSION: str(schema.VERSION),
            schema.META_GATEWAY: gateway,
            schema.META_BOOT: str(recorder.boot),
        }
        common = {"boot": recorder.boot, "kind": 0, "hub": "bus plant", "bus": "plant", "peer": "app",
                  "dir": 0, "count": 1, "verdict": 0, "message_bytes": 24, "type": 1}  # fmt: skip
        step_ns = _HOUR_NS // self.rows
        made = [
            {**common, "cap_seq": recorder.number + n, "ts_ns": begin_ns + n * step_ns,
             "tokens": [token(gateway), token(f"sensor-{(n + salt) % _SENSORS}")],
             "payload": f"{VALUE_MOST - n % self.rows * 0.1:.1f} {begin_ns + n}".encode()}
            for n in range(self.rows)
        ]  # fmt: skip
        return pa.Table.from_pylist(made, schema=schema.arrow_schema(words))

    def _place(self, partial: Path, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(path)
        self.files += 1
        self.put_rows += self.rows


def _ns(hour: int) -> int:
    return int(START.timestamp()) * 10**9 + hour * _HOUR_NS


def _age(directory: Path) -> None:
    """Let a day's directories look as if nothing had changed in them for long."""
    then_s = time.time() - _LONG_AGO_S
    for one in directory.iterdir():
        os.utime(one, (then_s, then_s))
