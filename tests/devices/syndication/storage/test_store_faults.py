"""Each way in which the file of a store can fail: it is said once, and nothing stored is lost."""

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bus.errors import LinkError
from devices.disk import DiskThread
from devices.syndication.state.producers import Entry
from devices.syndication.storage.database import FORMAT, OURS, Database
from devices.syndication.storage.store import Store
from devices.syndication.wire.messages import pack
from tests.devices.syndication.storage.store_support import BOUNDS, Memory, Open, again
from tests.helpers.peers import until

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


async def test_of_a_file_that_cannot_be_opened_it_is_not_said_that_it_is_read(
    open_store: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devices.syndication.storage.store._LATE_S", 0.05)
    (tmp_path / "file").touch()
    memory = open_store(tmp_path / "file" / "s.db")
    late_s = asyncio.get_running_loop().time() + 0.1
    await until(lambda: asyncio.get_running_loop().time() > late_s and memory.store.fault)
    assert memory.ready
    assert "are not stored: File exists" in caplog.text
    assert "still being read" not in caplog.text


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
