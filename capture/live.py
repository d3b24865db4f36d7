"""The rows of a recorder's directory as they come: of finished files, and of journals. Needs pyarrow.

A *position* says which rows were read, by gateway. So a file may come late, or be merged with others: what
was read is not read again, and what is new is found wherever it is.
"""

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from capture import journals, parquet, ranges
from capture.batches import day_recorded
from capture.files import CaptureError, gateway_of, journals_beside, listed, opened
from capture.locks import reading
from capture.ranges import Interval, Ranges
from capture.schema import DATE, GATEWAY

Position = dict[str, Ranges]

_SURE_S: Final = 2.0
"""A directory that changed so lately is listed again: its time may not tell two changes apart."""
_OLD_S: Final = 86_400.0
"""The age of the last change of a directory at which its files are forgotten, and looked at again if need be.
"""


class Piece(NamedTuple):
    """Rows `first` to `last` of a run of a recorder: in a file, or in a journal from the byte `offset` on."""

    path: str
    gateway: str
    boot: int
    first: int
    last: int
    offset: int | None = None


class Held(NamedTuple):
    """A file or journal of a gateway, or a directory of files, and the rows that it has."""

    path: Path
    gateway: str
    rows: Ranges
    journal: journals.Index | None = None
    is_directory: bool = False


class _File(NamedTuple):
    """A file as it was seen; with another `mark` it is another file, such as one that was merged."""

    mark: tuple[int, int]
    rows: Ranges


class _Day(NamedTuple):
    """A directory of a day and gateway as it was seen: `files` are None if it is old, `rows` those of all."""

    changed_ns: int
    files: dict[Path, _File] | None
    rows: Ranges


class Live:
    """A view of the directory of days `days`, and of the journals beside it. It keeps what it saw, so that a
    look costs little if little has changed. Raises `CaptureError` for a file that cannot be read, or
    `OSError`."""

    def __init__(self, days: Path) -> None:
        self.days = days
        self._days: dict[Path, _Day] = {}
        self._journals: dict[Path, journals.Index] = {}

    def held(self) -> list[Held]:
        """List what there is: files before journals, of which one may have become a file meanwhile."""
        open_now = list(self._open_journals())
        return [*self._files(), *open_now]

    def _files(self) -> Iterator[Held]:
        if not self.days.is_dir():
            return
        with reading(self.days):
            self._look()
        for directory, day in self._days.items():
            gateway = directory.name.partition("=")[2]
            if day.files is None:
                yield Held(directory, gateway, day.rows, is_directory=True)
            else:
                yield from (Held(path, gateway, one.rows) for path, one in day.files.items())

    def _look(self) -> None:
        now_s, before = time.time(), self._days
        self._days = {}
        for directory, changed_ns in sorted(_directories(self.days)):
            known = before.get(directory)
            age_s = now_s - changed_ns / 1e9
            if known is None or known.changed_ns != changed_ns or age_s < _SURE_S:
                files = _files_in(directory, known.files or {} if known else {})
                known = _Day(changed_ns, files, ranges.together(one.rows for one in files.values()))
            if age_s > _OLD_S:
                known = known._replace(files=None)
            self._days[directory] = known

    def _open_journals(self) -> Iterator[Held]:
        paths = journals_beside(self.days)
        self._journals = {path: self._journals.get(path) or journals.Index(path) for path in paths}
        for path, index in self._journals.items():
            try:
                index.look()
            except FileNotFoundError:
                continue
            if index.batches:
                yield Held(path, gateway_of(path), index.ranges, index)


def _directories(days: Path) -> Iterator[tuple[Path, int]]:
    """Yield the directories of days and gateways, and when each was changed. A recorder may delete some
    meanwhile."""
    for day in days.glob(f"{DATE}=*"):
        with suppress(FileNotFoundError):
            for directory in day.glob(f"{GATEWAY}=*"):
                with suppress(FileNotFoundError):
                    yield directory, directory.stat().st_mtime_ns


def _files_in(directory: Path, known: dict[Path, _File]) -> dict[Path, _File]:
    """Look at the files of a directory, and open those that are not `known`."""
    found, paths = dict[Path, _File](), list[Path]()
    with suppress(FileNotFoundError):  # the recorder has deleted it
        paths = listed(directory)
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.stat()
            mark = status.st_ino, status.st_mtime_ns
            if path in known and known[path].mark == mark:
                found[path] = known[path]
            else:
                found[path] = _File(mark, _rows_of(path))
    return found


def _rows_of(path: Path) -> Ranges:
    """Return the rows of a file. Raises `CaptureError`, or `FileNotFoundError` if it has gone."""
    try:
        return ranges.of_path(path)
    except CaptureError as error:
        if not _was_gone(error):
            path.stat()
            raise
        raise FileNotFoundError(path) from None


def _was_gone(error: CaptureError) -> bool:
    """Tell whether a file was not there, where another may have its name by now."""
    return isinstance(error.__cause__, FileNotFoundError)


def latest(start: Position, held: Iterable[Held], limit_rows: int | None) -> Position:
    """Return the position after `start`: with all rows that there are, or at most about so many more."""
    there = _together(held)
    news = {gateway: ranges.without(rows, start.get(gateway, {})) for gateway, rows in there.items()}
    waiting = sum(map(bool, news.values()))
    share = None if limit_rows is None else max(1, limit_rows // max(1, waiting))
    end = {gateway: _present(rows, there.get(gateway)) for gateway, rows in start.items()}
    for gateway, rows in news.items():
        end[gateway] = ranges.together((end.get(gateway, {}), ranges.first_of(rows, share)))
    return end


def within(held: Iterable[Held], end: Position) -> Iterator[Held]:
    """Yield what there is, only with rows before a position."""
    for one in held:
        mine = ranges.without(one.rows, ranges.without(one.rows, end.get(one.gateway, {})))
        yield one._replace(rows=mine)


def _together(held: Iterable[Held]) -> Position:
    found = dict[str, list[Ranges]]()
    for one in held:
        found.setdefault(one.gateway, []).append(one.rows)
    return {gateway: ranges.together(rows) for gateway, rows in found.items()}


def _present(rows: Ranges, there: Ranges | None) -> Ranges:
    """Forget what positions need not tell of rows that have gone, so that they stay short.

    These are the runs of which a gateway that has files has none any more, and holes between rows that have
    gone and have no older ones there.
    """
    if there is None:
        return rows
    return {boot: _short(some, there[boot][0][0]) for boot, some in rows.items() if boot in there}


def _short(some: list[Interval], oldest: int) -> list[Interval]:
    """Join the intervals that end before the `oldest` row that is there."""
    gone = [one for one in some if one[1] < oldest]
    return [(gone[0][0], gone[-1][1]), *some[len(gone) :]] if gone else some


def pieces(start: Position, end: Position, held: Iterable[Held]) -> list[Piece]:
    """Find the rows between two positions, each once. Rows that are not there any more are left out."""
    rest = {gateway: ranges.without(rows, start.get(gateway, {})) for gateway, rows in end.items()}
    found = list[Piece]()
    for one in _unfolded(held, rest):
        wanted = rest.get(one.gateway, {})
        mine = ranges.without(wanted, ranges.without(wanted, one.rows))
        for boot, some in mine.items():
            for first, last in some:
                offset = None if one.journal is None else one.journal.offset_of(first)
                found.append(Piece(str(one.path), one.gateway, boot, first, last, offset))
        rest[one.gateway] = ranges.without(wanted, mine)
    return found


def _unfolded(held: Iterable[Held], wanted: Position) -> Iterator[Held]:
    """Yield what there is; the files of a directory only if it has rows that are wanted now."""
    for one in held:
        if not one.is_directory:
            yield one
        elif ranges.overlap(one.rows, wanted.get(one.gateway, {})):
            yield from (Held(path, one.gateway, file.rows) for path, file in _files_in(one.path, {}).items())


def read(days: Path, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Read the rows of a piece, with `date` and `gateway`. It may have moved to another file meanwhile.

    Raises `CaptureError`.
    """
    path = Path(piece.path)
    if piece.offset is not None:
        try:
            for batch in journals.rows_from(path, piece.offset, piece.first, piece.last):
                if len(batch):
                    yield _placed(batch, piece.gateway, day_recorded(batch))
            return
        except FileNotFoundError:
            pass
    elif path.exists():
        with reading(days):
            found = yield from _read_or_gone(path, piece)
        if found:
            return
    yield from _moved(days, piece)


def _read_or_gone(path: Path, piece: Piece) -> Generator[pa.RecordBatch, None, bool]:
    """Read rows in a file. Return False if there is no file any more. Raises `CaptureError`."""
    try:
        yield from _of_file(path, piece)
    except CaptureError as error:
        if path.exists() and not _was_gone(error):
            raise
        return False
    return True


def _of_file(path: Path, piece: Piece) -> Iterator[pa.RecordBatch]:
    day = path.parent.parent.name.removeprefix(f"{DATE}=")
    with opened(path) as file:
        names = parquet.rows_schema(file).names
        for batch in file.iter_batches(columns=names):
            rows = parquet.recorded(pa.Table.from_batches([batch]))
            mine = rows.filter(pc.equal(rows["boot"], piece.boot))
            for part in mine.to_batches():
                yield _placed(journals.between(part, piece.first, piece.last), piece.gateway, day)


def _moved(days: Path, piece: Piece) -> Iterator[pa.RecordBatch]:
    """Read the rows wherever they are now: a journal has become a file, or files were merged. They stay there
    from the look on, or one that moved meanwhile would be taken for one that has been deleted."""
    end = {piece.gateway: {piece.boot: [(piece.first, piece.last)]}}
    with reading(days):
        held = [one for one in Live(days).held() if one.gateway == piece.gateway and one.journal is None]
        for one in pieces({}, end, held):
            yield from _read_or_gone(Path(one.path), one)


def _placed(batch: pa.RecordBatch, gateway: str, day: str) -> pa.RecordBatch:
    """Add the columns that a file's directory says, or will say."""
    columns = {
        DATE: pa.array([date.fromisoformat(day)] * len(batch), pa.date32()),
        GATEWAY: pa.array([gateway] * len(batch), pa.string()),
    }
    for name, column in columns.items():
        batch = batch.append_column(name, column)
    return batch
