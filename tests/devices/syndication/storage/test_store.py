"""The store of metadata: what comes back, how often it writes, and each way in which its file can fail."""

import asyncio
import sqlite3
import time
from pathlib import Path

import pytest

from devices.syndication.bounds import Bounds
from devices.syndication.state.producers import Entry
from devices.syndication.storage.database import Database
from devices.syndication.wire.messages import pack
from tests.devices.syndication.storage.store_support import BOUNDS, Memory, Open, again
from tests.helpers.peers import until


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


@pytest.mark.parametrize("inherits", [False, True])
async def test_what_comes_while_the_file_is_read_is_added_to_it_at_the_end(
    open_store: Open, caplog: pytest.LogCaptureFixture, inherits: bool
) -> None:
    first = open_store()
    for id in "abc":
        first.say(id, {"n": 1})
    first.store.close()
    second = Memory(first.store.path)
    second.say("d", {"n": 2})
    if inherits:
        second.store.renew()
    second.open()
    second.say("a", {"n": 2})
    second.store.close()
    assert not second.restored
    assert not caplog.messages
    assert await again(open_store, first) == {"a": {"n": 2}, "b": {"n": 1}, "c": {"n": 1}, "d": {"n": 2}}


async def test_what_is_forgotten_while_the_file_is_read_does_not_come_back(open_store: Open) -> None:
    first = open_store()
    first.say("a", {"n": 1})
    first.say("b", {"n": 1})
    first.store.close()
    second = Memory(first.store.path)
    second.open()
    second.forget("a")
    second.store.close()
    assert await again(open_store, first) == {"b": {"n": 1}}


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
    stood_s = [
        gone_s - now_s + age_s for (*_, gone_s), age_s in zip(other.restored, (30, 20, 10, 0), strict=True)
    ]
    assert 0 < min(stood_s) <= max(stood_s) < loop.time() - now_s  # while nobody had the file


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
    loop = asyncio.get_running_loop()
    now_s = loop.time()
    memory.say("a", {"n": 1}, now_s - 50.0)
    memory.store.close()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump_s)
    other = open_store(memory.store.path)
    await until(lambda: other.ready)
    ((_, _, restored_s),) = other.restored
    assert now_s - 50.0 < restored_s < loop.time() - 50.0


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
