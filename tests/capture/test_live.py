"""What is new in a recorder's directory: each row once, from journals and files, as they move."""

import fcntl
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from hypothesis import given
from hypothesis import strategies as st

from capture import compact, files, live, ranges
from capture.files import CaptureError, days_directory
from capture.live import Live, Position, latest, pieces
from tests.capture.divided import divide
from tests.capture.recordings import BOOT, GATEWAY, Recording
from tests.rigs.planted import Plan, generate


def numbers(days: Path, found: Sequence[live.Piece]) -> list[int]:
    return [n for piece in found for batch in live.read(days, piece) for n in batch["cap_seq"].to_pylist()]


def step(look: Live, start: Position, limit: int | None = None) -> tuple[Position, list[int]]:
    """Take one batch: return the position after it, and the numbers of its rows."""
    end = latest(start, look.held(), limit)
    return end, numbers(look.days, pieces(start, end, look.held()))


def test_rows_come_as_they_are_recorded_and_once(tmp_path: Path) -> None:
    look, recording = Live(days_directory(tmp_path)), Recording(tmp_path)
    at, found = step(look, {})
    assert (at, found) == ({}, [])
    recording.add(3)
    at, found = step(look, at)
    assert found == [0, 1, 2]
    recording.add(2)
    at, found = step(look, at)
    assert found == [3, 4]
    recording.finish()
    assert step(look, at) == (at, [])
    after = Recording(tmp_path, recording.number)
    after.add(2)
    at, found = step(look, at)
    assert found == [5, 6]
    assert at == {GATEWAY: {BOOT: [(0, 6)]}}


def test_a_journal_that_became_a_file_before_it_was_read(tmp_path: Path) -> None:
    look, recording = Live(days_directory(tmp_path)), Recording(tmp_path)
    recording.add(5)
    end = latest({}, look.held(), 3)
    found = pieces({}, end, look.held())
    recording.finish()
    assert numbers(look.days, found) == [0, 1, 2]


def test_files_that_are_merged_as_a_journal_is_looked_for_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has become a file, which a compaction moves as soon as it may."""
    look, recording = Live(days_directory(tmp_path)), Recording(tmp_path)
    recording.add(5)
    found = pieces({}, latest({}, look.held(), None), look.held())
    made, real = recording.finish(), Live.held

    def held(its: Live) -> list[live.Held]:
        there = real(its)
        directory = os.open(its.days, os.O_RDONLY)
        with suppress(BlockingIOError):  # else a reader keeps files where they are
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            made.rename(made.with_name(f"1{made.name}"))
        os.close(directory)
        return there

    monkeypatch.setattr(Live, "held", held)
    assert numbers(look.days, found) == [0, 1, 2, 3, 4]


def test_rows_that_are_in_a_journal_and_a_file_come_once(tmp_path: Path) -> None:
    look, recording = Live(days_directory(tmp_path)), Recording(tmp_path)
    recording.add(5)
    kept = recording.path.read_bytes()
    recording.finish()
    recording.path.write_bytes(kept)
    assert step(look, {})[1] == [0, 1, 2, 3, 4]


def test_a_torn_tail_is_read_when_it_is_whole(tmp_path: Path) -> None:
    look, recording = Live(days_directory(tmp_path)), Recording(tmp_path)
    recording.add(2)
    recording.add(2)
    whole = recording.path.read_bytes()
    recording.path.write_bytes(whole[:-10])
    at, found = step(look, {})
    assert found == [0, 1]
    recording.path.write_bytes(whole)
    assert step(look, at)[1] == [2, 3]


def test_a_batch_is_bounded_and_all_gateways_get_a_share(tmp_path: Path) -> None:
    generate(tmp_path, Plan(rows=3_000, filtered=True))
    look, at, total = Live(days_directory(tmp_path)), Position(), 0
    while True:
        end, found = step(look, at, 200)
        if not found:
            break
        assert len(found) <= 200
        if not at:
            assert len(end) == 4
        at, total = end, total + len(found)
    every = step(look, {})[1]
    assert (total, len(every)) == (len(every), sum(row_count(at)))


def row_count(position: Position) -> list[int]:
    return [last - first + 1 for rows in position.values() for some in rows.values() for first, last in some]


def test_a_file_that_comes_late_and_a_merge_change_nothing_that_was_read(tmp_path: Path) -> None:
    generate(tmp_path, Plan(rows=3_000, filtered=True))
    for path in files.listed(tmp_path):
        divide(path, 3)
    look = Live(days_directory(tmp_path))
    every = sorted(step(look, {})[1])
    late = files.listed(tmp_path)[1]
    aside = late.rename(tmp_path / late.name)
    at, first = step(look, {})
    list(compact.compact(look.days, "2999-01-01"))
    assert step(look, at)[1] == []
    aside.rename(late)
    at, second = step(look, at)
    assert second
    assert sorted(first + second) == every


def test_rows_of_files_that_were_merged_before_they_were_read(tmp_path: Path) -> None:
    generate(tmp_path, Plan(rows=3_000, filtered=True))
    for path in files.listed(tmp_path):
        divide(path, 3)
    look = Live(days_directory(tmp_path))
    found = pieces({}, latest({}, look.held(), None), look.held())
    every = sorted(step(look, {})[1])
    list(compact.compact(look.days, "2999-01-01"))
    assert sorted(numbers(look.days, found)) == every


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    look, recording = Live(days_directory(tmp_path)), Recording(tmp_path)
    recording.add(5)
    made = recording.finish()
    made.write_bytes(made.read_bytes()[:100])
    with pytest.raises(CaptureError, match=made.name):
        look.held()


def test_runs_that_have_gone_are_forgotten_but_not_if_all_is_gone(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.add(2)
    recording.finish()
    look = Live(days_directory(tmp_path))
    at = {GATEWAY: {7: [(0, 9)], BOOT: [(0, 1)]}, "gw-b": {8: [(0, 3)]}}
    assert latest(at, look.held(), None) == {GATEWAY: {BOOT: [(0, 1)]}, "gw-b": {8: [(0, 3)]}}


def test_holes_between_rows_that_have_gone_are_forgotten(tmp_path: Path) -> None:
    recording = Recording(tmp_path, 500)
    recording.add(5)
    recording.finish()
    look = Live(days_directory(tmp_path))
    holes = [(n, n + 3) for n in range(0, 450, 10)]
    at = {GATEWAY: {BOOT: [*holes, (502, 504)]}}
    assert latest(at, look.held(), None) == {GATEWAY: {BOOT: [(0, 443), (500, 504)]}}
    assert step(look, at)[1] == [500, 501]
    late = Recording(tmp_path, 460)  # of the days between those that have gone and those that are there
    late.add(3)
    late.finish()
    assert step(look, {GATEWAY: {BOOT: [(0, 443), (500, 504)]}})[1] == [460, 461, 462]


def test_retention_may_delete_a_day_while_it_is_looked_at(tmp_path: Path) -> None:
    generate(tmp_path / "whole", Plan(rows=1_000, filtered=True))
    days, ended = days_directory(tmp_path / "here"), Event()
    days.mkdir(parents=True)

    def come_and_go() -> None:
        while not ended.is_set():
            for day in days_directory(tmp_path / "whole").iterdir():
                shutil.copytree(day, days / day.name, copy_function=os.link)  # whole files
                shutil.rmtree(days / day.name)

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(come_and_go)
        try:
            for _ in range(500):
                look = Live(days)
                for piece in pieces({}, latest({}, look.held(), None), look.held()):
                    list(live.read(days, piece))
        finally:
            ended.set()
        going.result()


_CALLS = [(live, "reading"), (live, "listed"), (live, "opened"), (ranges, "opened"), (Path, "exists"),
          (Path, "is_dir"), (Path, "open"), (Path, "glob")]  # fmt: skip


@pytest.mark.parametrize("is_finished", [False, True])
@pytest.mark.parametrize("takes_days", [False, True])
def test_a_directory_may_be_removed_at_any_moment_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_finished: bool, takes_days: bool
) -> None:
    """A watch ended with an error where that was between its look and its reading."""
    for last in count(1):
        root = tmp_path / str(last)
        look, recording = Live(days_directory(root)), Recording(root)
        recording.add(3)
        if is_finished:
            recording.finish()
            later = Recording(root, recording.number)
            later.add(2)
        calls = count(1)
        with monkeypatch.context() as patched:
            for owner, name in _CALLS:
                patched.setattr(owner, name, _removing(getattr(owner, name), calls, last, root, takes_days))
            at, found = step(look, {})
        assert found == sorted({*found} & {*range(5)})
        after = Recording(root, 10)
        after.add(2)
        after.finish()
        assert step(look, at)[1][-2:] == [10, 11]
        if next(calls) <= last:
            assert last > 5
            return


def _removing(call: Any, calls: "count[int]", last: int, root: Path, takes_days: bool) -> Any:
    """Return a function that, as the call with the number `last`, first removes a directory."""

    def removing(*arguments: Any, **more: Any) -> Any:
        if next(calls) == last:
            shutil.rmtree(days_directory(root) if takes_days else root, ignore_errors=True)
        return call(*arguments, **more)

    return removing


def test_of_old_days_only_their_rows_are_kept(tmp_path: Path) -> None:
    generate(tmp_path, Plan(rows=3_000, filtered=True))
    for path in files.listed(tmp_path):
        divide(path, 3)
    look = Live(days_directory(tmp_path))
    at, every = step(look, {})
    for path in files.listed(tmp_path):
        os.utime(path.parent, (1_700_000_000, 1_700_000_000))
    assert step(look, at) == (at, [])
    assert [one.is_directory for one in look.held()] == [True] * 4
    assert sorted(step(look, {})[1]) == sorted(every)
    first = files.listed(tmp_path)[0]
    first.rename(tmp_path / first.name)
    at, before = step(look, {})
    assert 0 < len(before) < len(every)
    (tmp_path / first.name).rename(first)  # it comes late
    assert sorted(before + step(look, at)[1]) == sorted(every)


rows = st.dictionaries(st.integers(0, 2), st.sets(st.integers(0, 30), min_size=1), max_size=3)


def ranges_of(found: dict[int, set[int]]) -> Any:
    return ranges.joined((boot, n, n) for boot, some in found.items() for n in some)


def rows_in(found: Any) -> set[tuple[int, int]]:
    return {(boot, n) for boot, some in found.items() for first, last in some for n in range(first, last + 1)}


@given(rows, rows, st.integers(0, 40))
def test_ranges_are_sets_of_rows(one: dict[int, set[int]], other: dict[int, set[int]], limit: int) -> None:
    mine, held = ranges_of(one), ranges_of(other)
    assert rows_in(ranges.without(mine, held)) == rows_in(mine) - rows_in(held)
    assert rows_in(ranges.first_of(mine, limit)) == set(sorted(rows_in(mine))[:limit])
