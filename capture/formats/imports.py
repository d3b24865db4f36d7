"""Files of the field put into a directory of a capture, each row once. Needs numpy and pyarrow."""

import json
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from bus.errors import words_of
from bus.key_types import check_name
from bus.machine.partial import partial_of
from capture import frames as can
from capture import names, parquet, ranges
from capture.files import (
    CaptureError,
    boot_of,
    capture_file,
    day_of,
    days_directory,
    gateway_of,
    listed,
    name_of,
)
from capture.formats.format import Format, Style
from capture.formats.rows import are_rows, batches
from capture.formats.runs import RECORDER, STEP_NS, run_of
from capture.formats.source import Source
from capture.formats.table import BY_KEY, format_of
from capture.frames import Frames
from capture.pcapng import Packet
from capture.ranges import Ranges
from capture.schema import (
    META_BOOT,
    META_GATEWAY,
    META_RECORDER,
    META_SOURCE,
    META_TOPOLOGY,
    META_VERSION,
    TOLD,
    VERSION,
    Kind,
    arrow_schema,
)

_DAY_NS: Final = 86_400 * 10**9
_FILE_ROWS: Final = 1 << 22
_OPEN: Final = 256
_HELD_ROWS: Final = 1 << 20
_FILES: Final = 10_000
_FINGERPRINT_BYTES: Final = 4096


class Imported(NamedTuple):
    """The result of reading a file: its format, rows that were written, rows that had been there, and
    what was left out, a line for each reason."""

    format: str
    written: int
    held: int
    told: list[str]


def imported(
    path: Path,
    root: Path,
    gateway: str,
    key: str | None = None,
    on_progress: Callable[[float, int], None] = lambda part, rows: None,
) -> Imported:
    """Read a file into the directory `root`. CAN frames become rows of `gateway`; rows keep theirs.

    A file that is read again adds only what is new in it. `on_progress` gets the part that is read and the
    rows so far. Raises `CaptureError`.
    """
    target: Target | None = None
    with Source(path, lambda part: on_progress(part, target.seen if target else 0)) as source:
        form = BY_KEY[key] if key else format_of(str(path), source.head)
        style: Style = {}
        name = os.fsencode(path.name).decode(errors="backslashreplace")
        target = Target(root, gateway, name, form, style, source.head)
        try:
            for item in form.read(source, style):
                if isinstance(item, Frames):
                    target.add_frames(item)
                else:
                    target.add_rows(item)
            target.close()
        except OSError as error:
            raise CaptureError(f"{root}: {words_of(error)}") from error
        finally:
            target.abandon()
        if target.odd:
            source.told.leave("rows that no capture file has", target.odd)
        return Imported(form.key, target.written, target.held, list(source.told.lines()))


class _Run(NamedTuple):
    gateway: str
    boot: int


class _Sheet:
    """A capture file of one day and run that is being written."""

    def __init__(self, root: Path, run: _Run, day: int, first: int, schema: pa.Schema) -> None:
        name = name_of(run.boot, first)
        self.path = capture_file(root, day_of(day * _DAY_NS), run.gateway, name)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.aside = partial_of(self.path)
        self.rows = 0
        self._sheet = parquet.Sheet(self.aside, schema)

    def add(self, batch: pa.RecordBatch) -> None:
        self._sheet.add(batch)
        self.rows += batch.num_rows

    @property
    def held_rows(self) -> int:
        return self._sheet.held_rows

    def flush(self) -> None:
        self._sheet.flush()

    def close(self, words: Mapping[str, str]) -> None:
        self._sheet.close(words)
        self.aside.replace(self.path)
        parquet.sync(self.path.parent)

    def abandon(self) -> None:
        self._sheet.abandon()
        with suppress(OSError):
            self.aside.unlink(missing_ok=True)


class Target:
    """A directory that rows of one file are written to.

    `written`, `held` (there already) and `odd` count them; `seen` all.
    """

    def __init__(self, root: Path, gateway: str, name: str, form: Format, style: Style, head: bytes) -> None:
        self.written = self.held = self.odd = self.seen = 0
        self._root, self._gateway, self._name, self._form, self._style = root, gateway, name, form, style
        self._print = zlib.crc32(head[:_FINGERPRINT_BYTES]) % STEP_NS
        self._boot: int | None = None
        self._next = 0
        self._sheets: dict[tuple[_Run, int], _Sheet] = {}
        self._there: dict[_Run, Ranges] = {}
        self._topologies: dict[_Run, bytes] = {}
        self._files = 0

    def add_frames(self, frames: Frames) -> None:
        """Write CAN frames, with numbers of their own."""
        if self._boot is None:
            self._boot = run_of(frames, self._root, self._gateway, self._print)
        run = _Run(self._gateway, self._boot)
        batch = can.rows(frames, f"{can.FILE}{self._name}", self._boot, self._next, self._schema(run))
        self._next += len(frames)
        self._add(run, batch)

    def add_rows(self, packets: Iterable[Packet]) -> None:
        """Write rows of a capture, with the numbers that they have. Those of several runs may alternate: each
        run has files of its own."""
        runs = defaultdict[tuple[str, int], list[Packet]](list)
        for packet in packets:
            runs[packet.gateway, packet.boot].append(packet)
        for (gateway, boot), its in runs.items():
            for kind, some in groupby(its, _sort):
                self._add_some(_Run(self._named(gateway), boot), kind, list(some))

    def _add_some(self, run: _Run, kind: int, packets: list[Packet]) -> None:
        """Write rows of a run, or take what it tells."""
        if kind == Kind.NAMES:
            self._add_names(packets)
        elif kind == Kind.TOPOLOGY:
            self._tell(run, packets[-1].message)
        else:
            good = [packet for packet in packets if are_rows(packet)]
            self.odd += len(packets) - len(good)
            for batch in batches(good, self._schema(run)):
                self._add(run, batch)

    def _named(self, gateway: str) -> str:
        """Return the name of a gateway in a file, which becomes a directory; ours if that is none."""
        try:
            check_name(gateway)
        except ValueError:
            return self._gateway
        return gateway

    def _add_names(self, packets: list[Packet]) -> None:
        lines = [line for one in packets for line in one.message.decode(errors="replace").splitlines()]
        names.add(days_directory(self._root), self._gateway, lines)

    def _tell(self, run: _Run, topology: bytes) -> None:
        """Take the topology of later rows: a file is recorded under one."""
        if topology and not _is_topology(topology):
            self.odd += 1
        elif self._topologies.get(run, b"") != topology:
            for key in [key for key in self._sheets if key[0] == run]:
                self._close(key)
            self._topologies[run] = topology

    def _schema(self, run: _Run) -> pa.Schema:
        topology = self._topologies.get(run, b"").decode()
        return arrow_schema({
            **({META_TOPOLOGY: topology} if topology else {}),
            META_VERSION: str(VERSION), META_GATEWAY: run.gateway, META_BOOT: str(run.boot),
            META_RECORDER: RECORDER,
        })  # fmt: skip

    def _add(self, run: _Run, batch: pa.RecordBatch) -> None:
        self.seen += batch.num_rows
        there = self._there.get(run)
        if there is None:
            there = self._there[run] = _there(self._root, run)
        table = pa.Table.from_batches([batch])
        new = ranges.outside(table, there) if there else table
        self.held += len(table) - len(new)
        for day, part in _by_day(new):
            self._sheet(run, day, part)

    def _sheet(self, run: _Run, day: int, table: pa.Table) -> None:
        sheet = self._sheets.pop((run, day), None)
        if sheet is None:
            if len(self._sheets) >= _OPEN:
                self._close(next(iter(self._sheets)))
            self._files += 1
            if self._files > _FILES:
                raise CaptureError(
                    f"{self._name}: its rows jump between days or runs more than {_FILES} times"
                )
            sheet = _Sheet(self._root, run, day, table["cap_seq"][0].as_py(), table.schema)
        self._sheets[run, day] = sheet  # the last one in order: the first is closed, if there are too many
        for batch in table.to_batches():
            sheet.add(batch)
        self.written += len(table)
        if sheet.rows >= _FILE_ROWS:
            self._close((run, day))
        if sum(one.held_rows for one in self._sheets.values()) > _HELD_ROWS:
            max(self._sheets.values(), key=lambda one: one.held_rows).flush()

    def _close(self, key: tuple[_Run, int]) -> None:
        source = {"file": self._name, "format": self._form.key, "style": self._style}  # as learned so far
        self._sheets[key].close({META_SOURCE: json.dumps(source)})
        del self._sheets[key]

    def close(self) -> None:
        """Finish all files."""
        for key in list(self._sheets):
            self._close(key)

    def abandon(self) -> None:
        """Remove the files that are not finished."""
        for sheet in self._sheets.values():
            sheet.abandon()
        self._sheets.clear()


def _sort(packet: Packet) -> int:
    """Return the kind of a packet if it is no row."""
    return packet.kind if packet.kind in TOLD else int(Kind.FRAME)


def _is_topology(text: bytes) -> bool:
    """Return whether a text is JSON that has an object for each hub."""
    try:
        hubs = json.loads(text.decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(hubs, dict) and all(isinstance(hub, dict) for hub in hubs.values())


def _there(root: Path, run: _Run) -> Ranges:
    """Return the rows of a run that a directory has."""
    days = days_directory(root)
    if not days.is_dir():
        return {}
    word = name_of(run.boot, 0).partition("-")[0]
    paths = [path for path in listed(days) if gateway_of(path) == run.gateway and boot_of(path) == word]
    return ranges.together(map(ranges.of_path, paths))


def _by_day(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each day, by its number since 1970."""
    if not len(table):
        return
    days = table["ts_ns"].to_numpy() // _DAY_NS
    if (days == days[0]).all():
        yield int(days[0]), table
        return
    for day in np.unique(days).tolist():
        yield day, table.filter(pa.array(days == day))
