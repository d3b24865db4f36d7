"""The store of metadata: what comes back, how often it writes, and each way in which its file can fail."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bus.errors import LinkError
from devices.disk import DiskThread
from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import Entry
from devices.syndication.storage.database import FORMAT, OURS, Database, Stored
from devices.syndication.storage.store import Store
from devices.syndication.wire.messages import pack
from tests.devices.syndication.fakes import Kept
from tests.helpers.peers import until

BOUNDS = Bounds(producers=100, kept_s=100.0)


class Memory:
    """An owner that has what it is told, and what is restored."""

    def __init__(self, path: Path, bounds: Bounds = BOUNDS) -> None:
        self.kept = Kept()
        self.restored: list[tuple[str, Any, float]] = []
        self.ready = 0
        self.faults: list[str] = []
        self.store = Store(path, bounds, "s", self.faults.append, (0.001, 0.01), pause_s=0.0)

    def open(self) -> None:
        self.store.open(asyncio.get_running_loop(), self._restore, self._entries, self._be_ready)

    def _be_ready(self) -> None:
        self.ready += 1

    def _restore(self, row: Stored, gone_s: float) -> None:
        self.restored.append((row.id, row.metadata, gone_s))
        self.kept[row.id] = Entry(row.id, pack(row.metadata), gone_s)

    def _entries(self) -> list[Entry]:
        return list(self.kept.values())

    def say(self, id: str, metadata: Mapping[str, Any], gone_s: float | None = None) -> None:
        entry = Entry(id, pack(metadata), gone_s)
        self.kept.keep(entry)
        self.store.keep(entry)

    def forget(self, id: str) -> None:
        self.kept.forget(id)
        self.store.forget(id)

    async def written(self) -> None:
        """Wait until what was told is in the file."""
        before = self.store.counts["stored"]
        self.say("last", {"n": before})
        await until(lambda: self.store.counts["stored"] > before and not self.store.fault)


Open = Callable[..., Memory]


@pytest.fixture
async def open_store(tmp_path: Path) -> AsyncIterator[Open]:
    """Open a store in the directory of the test; all are closed at its end."""
    opened: list[Memory] = []

    def open_one(path: Path = tmp_path / "d" / "s.db", bounds: Bounds = BOUNDS) -> Memory:
        opened.append(Memory(path, bounds))
        opened[-1].open()
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.store.close()


async def again(open_store: Open, memory: Memory) -> dict[str, Any]:
    """Close a store, and return what another restores from its file."""
    memory.store.close()
    other = open_store(memory.store.path)
    await until(lambda: other.ready)
    other.store.close()
    return {id: metadata for id, metadata, _ in other.restored}


async def test_what_was_said_comes_back(open_store: Open) -> None:
    memory = open_store()
    await until(lambda: memory.ready)
    metadata = {"Room": "410", "at": {"x": [1, 2.5, None, True]}, "": "é", "big": 2**64 - 1}
    memory.say("a\0é", metadata)
    memory.say("", {"n": 1})
    memory.say("c", {"n": 1})
    memory.forget("c")
    memory.say("d", {"n": 1})
    memory.say("d", {"n": 2})
    assert await again(open_store, memory) == {"a\0é": metadata, "": {"n": 1}, "d": {"n": 2}}


async def test_changes_before_it_is_open_and_after_the_last_transaction_are_stored(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "s.db")
    memory.say("before", {"n": 1})
    memory.open()
    await until(lambda: memory.store.counts["stored"] == 1)
    memory.say("after", {"n": 1})
    memory.store.close()
    memory.store.close()
    database = Database(memory.store.path, BOUNDS)
    found, _ = database.rows(database.open())
    database.close()
    assert {stored.id for stored in found} == {"before", "after"}


async def test_many_changes_of_one_producer_are_one_write(open_store: Open) -> None:
    memory = open_store()
    await until(lambda: memory.ready)
    for n in range(1000):
        memory.say("a", {"n": n})
    await memory.written()
    assert memory.store.counts["stored"] <= 4
    assert await again(open_store, memory) == {"a": {"n": 999}, "last": {"n": 0}}


async def test_a_flood_of_changes_is_written_at_a_bounded_rate(open_store: Open) -> None:
    memory = open_store()
    await until(lambda: memory.ready)
    for n in range(100):
        memory.say(f"{n}", {"n": "x" * 4000})
    begin_s = time.monotonic()
    await until(lambda: memory.store.counts["stored"] == 100)
    memory.say("a", {"n": 1})
    await until(lambda: memory.store.counts["stored"] == 101)
    assert time.monotonic() - begin_s > 100 * 4000 / (4 << 20)  # never faster, however fast the machine is


async def test_rows_come_the_longest_gone_first_and_ages_go_on(open_store: Open) -> None:
    loop = asyncio.get_running_loop()
    memory = open_store()
    await until(lambda: memory.ready)
    now_s = loop.time()
    memory.say("present", {"n": 1})
    for id, age_s in (("b", 20.0), ("c", 10.0), ("a", 30.0), ("old", 101.0)):
        memory.say(id, {"n": 1}, now_s - age_s)
    memory.store.close()
    other = open_store(memory.store.path)
    await until(lambda: other.ready)
    assert [id for id, _, _ in other.restored] == ["a", "b", "c", "present"]
    ages_s = [now_s - gone_s for _, _, gone_s in other.restored]
    assert ages_s == pytest.approx([30.0, 20.0, 10.0, 0.0], abs=2.0)


async def test_a_file_with_more_producers_than_there_is_room_for_keeps_those_last_gone(
    open_store: Open,
) -> None:
    memory = open_store()
    await until(lambda: memory.ready)
    now_s = asyncio.get_running_loop().time()
    for n in range(20):
        memory.say(f"{n:02}", {"n": 1}, now_s - 50 + n)
    memory.store.close()
    other = open_store(memory.store.path, Bounds(producers=5))
    await until(lambda: other.ready)
    assert [id for id, _, _ in other.restored] == ["15", "16", "17", "18", "19"]


@pytest.mark.parametrize("jump_s", [-1e9, 1e9])
async def test_a_wall_clock_that_jumps_changes_no_age(
    open_store: Open, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    memory = open_store()
    await until(lambda: memory.ready)
    gone_s = asyncio.get_running_loop().time() - 99.0
    memory.say("a", {"n": 1}, gone_s)
    memory.store.close()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump_s)
    other = open_store(memory.store.path)
    await until(lambda: other.ready)
    ((_, _, restored_s),) = other.restored
    assert restored_s == pytest.approx(gone_s, abs=2.0)


def test_who_was_present_at_a_crash_is_gone_since_then_however_often_it_crashes(tmp_path: Path) -> None:
    database = Database(tmp_path / "s.db", BOUNDS)
    ran_s = database.open()
    database.write(ran_s + 5.0, {"a": Entry("a", pack({"n": 1}), None)}, anew=False)
    for start, age_s in ((5.0, 0.0), (65.0, 60.0), (104.0, 99.0)):
        ran_s = database.open()
        (found,), _ = database.rows(ran_s)
        assert (ran_s, found.age_s) == (start, age_s)
        database.write(ran_s + {5.0: 60.0, 65.0: 39.0, 104.0: 1.0}[start], {}, anew=False)
    assert database.rows(database.open()) == ([], 0)
    database.close()


async def test_more_changes_than_may_wait_are_all_written(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "s.db", Bounds(producers=10))
    for n in range(1000):
        memory.say(f"{n}", {"n": n})
        if n >= 10:
            memory.forget(f"{n - 10}")
        assert memory.store.waiting <= 20
    memory.open()
    await until(lambda: memory.store.counts["stored"])
    memory.store.close()
    database = Database(memory.store.path, BOUNDS)
    found, _ = database.rows(database.open())
    database.close()
    assert {stored.id for stored in found} == {f"{n}" for n in range(990, 1000)}


async def test_rows_that_no_client_can_have_said_are_left_out(
    open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    memory = open_store()
    await memory.written()
    memory.store.close()
    nested = b"\x91" * 600 + b"\xc0"
    rows = [
        (b"blob", pack({"n": 1}), 0.0),
        ("text", "text", 0.0),
        ("array", pack([1]), 0.0),
        ("half", pack({"n": 1})[:-1], 0.0),
        ("more", pack({"n": 1}) + b"\xc0", 0.0),
        ("deep", b"\x81\xa1n" + nested, 0.0),
        ("key", b"\x81\x01\x01", 0.0),
        ("x" * 201, pack({"n": 1}), 0.0),
        ("when", pack({"n": 1}), "then"),
    ]
    with sqlite3.connect(memory.store.path) as connection:
        connection.executemany("INSERT INTO producer VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO producer VALUES (CAST(x'ff' AS TEXT), x'80', 0.0)")
    connection.close()
    other = open_store(memory.store.path)
    await until(lambda: other.ready)
    assert {id for id, _, _ in other.restored} == {"blob", "when", "last"}
    assert other.store.counts["unread"] == 8
    assert [record.getMessage().partition(": ")[2].partition(": ")[2] for record in caplog.records] == [
        "8 rows are left out: no client can have said them"
    ]


# trouble: said once, served on, and all is stored when it is over


@contextmanager
def told(caplog: pytest.LogCaptureFixture, path: Path) -> Iterator[list[str]]:
    """Collect what the log says of a file."""
    lines: list[str] = []
    with caplog.at_level(logging.INFO):
        yield lines
    begin = f"s: {path}: "
    assert all(record.getMessage().startswith(begin) for record in caplog.records)
    lines += [record.getMessage().removeprefix(begin) for record in caplog.records]


async def more_faults(store: Store) -> None:
    before = store.counts["store faults"]
    await until(lambda: store.counts["store faults"] > before)


async def serve_until_mended(memory: Memory, mend: Callable[[], object]) -> None:
    """Let a store fail some times, while changes come; then mend its place."""
    await until(lambda: memory.ready)
    for n in range(5):
        memory.say(f"{n}", {"n": n})
        await more_faults(memory.store)
    memory.forget("0")
    assert memory.store.fault
    assert memory.ready == 1
    mend()
    await until(lambda: not memory.store.fault)
    assert memory.ready == 1


OVER = "metadata are stored again"


def failed(why: str) -> str:
    return f"metadata are not stored: {why}; will go on trying"


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def newer(path: Path) -> None:
    database = Database(path, BOUNDS)
    database.open()
    database.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()


def without_tables(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE clock (ran_s)")
        connection.execute(f"PRAGMA application_id = {OURS}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.close()


def damaged(path: Path) -> None:
    database = Database(path, BOUNDS)
    database.open()
    entries = [Entry(f"{n}", pack({"n": "x" * 3000}), 0.0) for n in range(60)]
    database.write(0.0, {entry.id: entry for entry in entries}, anew=False)
    database.close()
    with path.open("r+b") as file:
        for page in range(3, 20):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)


DAMAGED = "is damaged: move it away, and a new one will be made"
UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (
        lambda path: path.write_text("x" * 5000),
        "is no database: choose another path, or move it away",
    ),
    "foreign": (foreign, "is a database of another program: choose another path"),
    "newer": (newer, "has format 2, and this version of buscoupler knows 1: choose another path"),
    "tables": (without_tables, "lacks what a broker writes: move it away"),
    "damaged": (damaged, DAMAGED),
    "directory": (Path.mkdir, "Is a directory"),
}


@pytest.mark.parametrize("kind", UNFIT)
async def test_a_file_that_is_none_of_ours_is_not_touched_and_said_once(
    open_store: Open, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, why = UNFIT[kind]
    path, away = tmp_path / "s.db", tmp_path / "away"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with told(caplog, path) as lines:
        memory = open_store(path)
        await serve_until_mended(memory, lambda: path.rename(away))
    assert [line.removesuffix(": '" + str(path) + "'") for line in lines][-1:] == [OVER]
    assert len(lines) == 2
    assert why in lines[0]
    assert not away.is_file() or away.read_bytes()[100:] == before[100:]
    assert await again(open_store, memory) == {f"{n}": {"n": n} for n in range(1, 5)}


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


async def test_what_another_process_has_locked_at_the_start_comes_back_later(
    open_store: Open, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devices.syndication.storage.database._LOCKED_S", 0.001)
    first = open_store()
    first.say("before", {"n": 1})
    await first.written()
    first.store.close()
    path, pipe = first.store.path, subprocess.PIPE
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLD, path, stdin=pipe, stdout=pipe)
    assert other.stdin is not None
    assert other.stdout is not None
    await other.stdout.readline()
    with told(caplog, path) as lines:
        memory = open_store()
        await serve_until_mended(memory, other.stdin.close)
    await other.wait()
    assert lines == [failed("another process has it open"), OVER]
    assert "before" in {id for id, _, _ in memory.restored}


async def test_two_brokers_of_one_file_are_refused(open_store: Open) -> None:
    first = open_store()
    with pytest.raises(LinkError, match=r"s\.db: another syndication broker stores its producers there"):
        open_store()
    await until(lambda: first.ready)
    first.store.close()
    await until(lambda: open_store().ready or True)


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def remove_both(path: Path) -> None:
    path.unlink()
    log_of(path).unlink()


def replace(path: Path) -> None:
    path.unlink()
    path.touch()


REMOVE: dict[str, Callable[[Path], object]] = {
    "file": Path.unlink,
    "log": lambda path: log_of(path).rename(path.with_name("gone")),
    "both": remove_both,
    "directory": lambda path: path.parent.rename(path.parent.with_name("gone")),
    "replaced": replace,
}


@pytest.mark.parametrize("kind", REMOVE)
async def test_a_file_that_is_removed_under_it_is_made_again(
    open_store: Open, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory = open_store()
    memory.say("a", {"n": 1})
    await memory.written()
    with told(caplog, memory.store.path) as lines:
        REMOVE[kind](memory.store.path)
        memory.say("b", {"n": 1})
        await until(lambda: memory.store.counts["store faults"] and not memory.store.fault)
    assert lines == [failed("was removed or replaced while it was open"), OVER]
    assert set(await again(open_store, memory)) == {"a", "b", "last"}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("a small disk needs root, to be mounted")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)


async def test_a_full_disk_is_said_once_and_stored_again_when_there_is_room(
    open_store: Open, small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = open_store(small / "s.db")
    await memory.written()
    other = small / "other"
    other.write_bytes(bytes(160 * 1024))
    with told(caplog, memory.store.path) as lines:
        for n in range(20):
            memory.say(f"{n}", {"n": "x" * 4000})
        await until(lambda: memory.store.counts["store faults"] >= 5)
        assert memory.store.fault == "the disk is full"
        memory.forget("last")
        other.unlink()
        await until(lambda: not memory.store.fault)
    assert lines == [failed("the disk is full"), OVER]
    assert len(await again(open_store, memory)) == 20


async def test_a_disk_that_turns_read_only_is_said_once(
    open_store: Open, small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = open_store(small / "s.db")
    memory.say("a", {"n": 1})
    await memory.written()
    memory.store.close()
    remount(small, "ro")
    with told(caplog, memory.store.path) as lines:
        memory = open_store(small / "s.db")
        await serve_until_mended(memory, lambda: remount(small, "rw"))
    assert [line.partition(": '")[0] for line in lines] == [
        "metadata are not stored: Read-only file system",
        OVER,
    ]
    assert set(await again(open_store, memory)) == {"a", "last", "1", "2", "3", "4"}


async def test_a_thread_that_is_stuck_holds_up_nobody() -> None:
    stuck = threading.Event()
    thread = DiskThread("w", asyncio.get_running_loop())
    thread.submit(stuck.wait, lambda _: None)
    assert thread.wait_for(stuck.is_set, 0.01) is None
    assert not thread.end(0.01)
    stuck.set()
    assert thread.end(20.0)
