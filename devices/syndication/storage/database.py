"""The SQLite file in which a syndication broker stores the metadata of producers. Every call may block.

The file has a clock of its own, `ran_s`: the seconds that brokers have run on it, as far as that was written.
Ages are measured by it, because the clock of a gateway may be set back or forth by years.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from bus.errors import BusError, words_of
from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import Entry
from devices.syndication.wire.cutter import Cutter
from devices.syndication.wire.messages import Publication, pack

T = TypeVar("T")
FORMAT: Final = 1
OURS: Final = 0x42435359
"""SQLite's application id of such a file."""

_LOCKED_S: Final = 1.0  # the wait for another process
_WAL_BYTES: Final = 4 << 20  # the log is cut to this size when all of it is in the database
_ROWS: Final = 256  # one statement writes as many: between two, another thread may take Python's lock
_ROWS_READ: Final = 32  # at a time: to remember them takes the loop under a millisecond, as a rule
_NIL: Final = b"\xc0"
_WORDS: Final = {
    sqlite3.SQLITE_BUSY: "another process has it open",
    sqlite3.SQLITE_NOTADB: "is no database: choose another path, or move it away",
    sqlite3.SQLITE_CORRUPT: "is damaged: move it away, and a new one will be made",
    sqlite3.SQLITE_FULL: "the disk is full",
}
_TABLES: Final = (
    "CREATE TABLE producer (id TEXT PRIMARY KEY, metadata BLOB NOT NULL, gone_s REAL) WITHOUT ROWID",
    "CREATE TABLE clock (ran_s REAL NOT NULL)",
    "INSERT INTO clock VALUES (0.0)",
    f"PRAGMA application_id = {OURS}",
    f"PRAGMA user_version = {FORMAT}",
)
_ENDED: Final = "UPDATE producer SET gone_s = ? WHERE gone_s IS NULL OR gone_s > ?"
_BEYOND: Final = """
DELETE FROM producer WHERE id NOT IN (SELECT id FROM producer ORDER BY gone_s DESC, id LIMIT ?)"""


class DatabaseError(BusError):
    """The file cannot be used. The text says why, and what to do."""


TROUBLE: Final = (sqlite3.Error, OSError, DatabaseError)
"""The errors of a database. After one of them it is closed, and can be opened again."""


class Stored(NamedTuple):
    """A stored producer. `age_s` is the time in seconds since it went."""

    id: str
    metadata: dict[str, Any]
    age_s: float


class Database:
    """A database file, which belongs to one process from `open` to `close`. Its methods raise `TROUBLE`."""

    def __init__(self, path: Path, bounds: Bounds) -> None:
        self._path, self._bounds = path, bounds
        self._connection: sqlite3.Connection | None = None
        self._rows: sqlite3.Cursor | None = None
        self._files: list[tuple[int, int]] = []

    def open(self) -> float:
        """Open or make the file, delete producers beyond the bounds, and return its clock in seconds.

        Producers that were present when the last broker ended are gone since then.
        """
        self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640))  # says why not, in words
        self._connection = connection = sqlite3.connect(
            self._path, _LOCKED_S, isolation_level=None, check_same_thread=False, cached_statements=8
        )
        connection.text_factory = bytes
        try:
            return self._begin(connection)
        except BaseException:
            self.close()
            raise

    def _begin(self, connection: sqlite3.Connection) -> float:
        # Exclusive: the log needs no shared memory, whose file may be cut while it is mapped (SIGBUS).
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        fresh = self._check_format(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        with _transaction(connection):
            for statement in _TABLES if fresh else ():
                connection.execute(statement)
            ran_s = float(_one(connection, "SELECT ran_s FROM clock"))
            self._end_of_last_run(connection, ran_s)
        self._files = self._identities()
        return ran_s

    def _check_format(self, connection: sqlite3.Connection) -> bool:
        """Return whether the file is empty. Raises `DatabaseError` if it is of another program or format."""
        if not _one(connection, "SELECT count(*) FROM sqlite_master"):
            return True
        if _one(connection, "PRAGMA application_id") != OURS:
            raise DatabaseError("is a database of another program: choose another path")
        version = _one(connection, "PRAGMA user_version")
        if version != FORMAT:
            raise DatabaseError(
                f"has format {version}, and this version of buscoupler knows {FORMAT}: choose another path"
            )
        return False

    def _end_of_last_run(self, connection: sqlite3.Connection, ran_s: float) -> None:
        connection.execute(_ENDED, (ran_s, ran_s))
        connection.execute("DELETE FROM producer WHERE gone_s <= ?", (ran_s - self._bounds.kept_s,))
        connection.execute(_BEYOND, (self._bounds.producers,))

    def rows(self, ran_s: float) -> tuple[list[Stored], int]:
        """Return the next producers, the longest gone first, and the number of invalid rows left out.

        `ran_s` is the file's clock when it was opened. No rows and no invalid ones: all were read.
        """
        if self._rows is None:
            query = "SELECT id, metadata, gone_s FROM producer ORDER BY gone_s, id"
            self._rows = self._open().execute(query)
        rows = [(_read(id, packed, self._bounds), at) for id, packed, at in self._rows.fetchmany(_ROWS_READ)]
        found = [Stored(read.id, read.metadata, ran_s - at) for read, at in rows if read is not None]
        return found, len(rows) - len(found)

    def write(self, ran_s: float, changes: Mapping[str, Entry | None], anew: bool) -> None:
        """Write entries, and delete those of ids with None, in one transaction.

        The times of entries are those of the file's clock. `anew` deletes all other entries.
        """
        try:
            self._write(self._open(), ran_s, changes, anew)
        except BaseException:
            self.close()
            raise

    def _write(
        self, connection: sqlite3.Connection, ran_s: float, changes: Mapping[str, Entry | None], anew: bool
    ) -> None:
        if self._identities() != self._files:
            raise DatabaseError("was removed or replaced while it was open")
        with _transaction(connection):
            connection.execute("UPDATE clock SET ran_s = ?", (ran_s,))
            if anew:
                connection.execute("DELETE FROM producer")
            else:
                _delete(connection, [id for id, entry in changes.items() if entry is None])
            _put(connection, [entry for entry in changes.values() if entry is not None])

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise DatabaseError("is not open")
        return self._connection

    def _identities(self) -> list[tuple[int, int]]:
        """Return device and inode of the files at our paths: they differ if an open one was replaced."""
        found = [os.stat(path) for path in (self._path, f"{self._path}-wal") if os.path.exists(path)]
        return [(stat.st_dev, stat.st_ino) for stat in found]

    def close(self) -> None:
        """Close the file. Idempotent."""
        connection, self._connection, self._rows = self._connection, None, None
        if connection is not None:
            connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it
            connection.execute("ROLLBACK")
        raise


def _one(connection: sqlite3.Connection, query: str) -> Any:
    row = connection.execute(query).fetchone()
    if row is None:
        raise DatabaseError("lacks what a broker writes: move it away")
    return row[0]


def _put(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    for some in _by_rows(entries):
        values = ", ".join(["(?, ?, ?)"] * len(some))
        connection.execute(f"INSERT OR REPLACE INTO producer VALUES {values}", [x for e in some for x in e])


def _delete(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    for some in _by_rows(ids):
        marks = ", ".join("?" * len(some))
        connection.execute(f"DELETE FROM producer WHERE id IN ({marks})", some)


def _by_rows(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[at : at + _ROWS] for at in range(0, len(items), _ROWS))


def _read(id: object, packed: object, bounds: Bounds) -> Publication | None:
    """Read a row like a publication of a client, with the same bounds. Return None if it is invalid."""
    if not isinstance(id, bytes) or not isinstance(packed, bytes):
        return None
    cutter = Cutter(bounds)
    read = cutter.cut(b"\x93" + pack(id) + packed + _NIL)
    one = read[0] if len(read) == 1 and not cutter.waiting and not cutter.fault else None
    return one if isinstance(one, Publication) else None


def words(error: BaseException) -> str:
    """Return an error of a database in words, with what to do about it."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # errors of Python's module have none
    return _WORDS.get(code & 0xFF) or words_of(error)
