"""Opening a journal in a directory of this machine: what is refused, and with which line."""

import contextlib
import json
import os
import shutil
import tracemalloc
from pathlib import Path

import pytest

from bus.journal.errors import JournalError, JournalGone
from bus.journal.identity import NAME
from bus.journal.notes import ACKNOWLEDGED, COUNTS
from bus.journal.record import encode
from bus.journal.segment import Head, name_of, pack_head
from bus.journal.verify import records, verify
from bus.wire.batch import from_payloads
from tests.bus.journal.support import END, append, append_each, everything, numbered, opened


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Return the directory of a closed journal of five messages."""
    place = str(tmp_path / "a" / "trunk")
    journal = opened(None, place)
    append(journal, numbered(5))
    journal.close()
    return place


def test_a_journal_is_made_with_the_directories_above_it_and_nobody_else_can_read_it(place: str) -> None:
    journal = opened(None, place)
    assert len(everything(journal)) == 5
    journal.close()
    names = {"journal.json", "lock", "acknowledged", "received", "counts", "reserve", name_of(1)}
    assert set(os.listdir(place)) == names
    assert {(Path(place) / name).stat().st_mode & 0o007 for name in names} == {0}
    assert verify(place).faults == []
    assert [record.count for record in records(place)] == [5]


def test_the_directory_of_another_trunk_is_refused(place: str) -> None:
    with pytest.raises(JournalError) as caught:
        opened(None, place, made_for=("plant", "gw-a", "office"))
    assert str(caught.value) == (
        f"{place}: this is the journal of bus hall of gateway gw-a in system plant, not of bus office of "
        "gateway gw-a in system plant: give each trunk a directory of its own; if this one was renamed, send "
        "what is left by `buscoupler journal send`, and give another directory"
    )
    opened(None, place).close()


def test_a_journal_that_is_open_is_refused_to_others_until_it_is_closed(place: str) -> None:
    journal = opened(None, place)
    words = f"the journal {place} is open in another process: stop it, or give another directory"
    with pytest.raises(JournalError, match=words):
        opened(None, place)
    journal.close()
    opened(None, place).close()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        JournalError, match=r"file/trunk cannot be opened: Not a directory.*: see that the dir"
    ):
        opened(None, str(tmp_path / "file" / "trunk"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", '{"crc": 5}', "[" * 9000, "\0", '{"version":1}']
)
def test_a_damaged_identity_is_refused(place: str, text: str) -> None:
    (Path(place) / NAME).write_text(text)
    with pytest.raises(JournalError, match=r"journal\.json: it is damaged.*restore the file, or send"):
        opened(None, place)
    assert len(list(records(place))) == 1
    assert "it is damaged" in verify(place).faults[0]


def test_an_identity_that_is_gone_is_refused_while_there_are_messages(place: str) -> None:
    (Path(place) / NAME).unlink()
    with pytest.raises(JournalError, match=r"there are messages, but no journal\.json"):
        opened(None, place)


def test_a_newer_version_is_refused(place: str) -> None:
    path = Path(place) / NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(JournalError, match="it has version 2, and this program knows 1: install a newer one"):
        opened(None, place)


def test_a_journal_of_26_million_messages_opens_at_once_and_in_little_memory(tmp_path: Path) -> None:
    place = str(tmp_path)
    journal = opened(None, place, bytes_max=4 << 30)
    append_each(journal, 10)
    journal.close()
    each = 72_000
    for first in range(11, 26_000_000, each):
        with open(tmp_path / name_of(first), "wb") as file:
            file.write(pack_head(Head(journal.id, first, 0)))
            file.truncate(8 << 20)  # without bytes on disk
    made = encode(from_payloads(numbered(each, 100)).data, first, 7)
    (tmp_path / name_of(first)).write_bytes(
        pack_head(Head(journal.id, first, 0)) + b"".join(one.encoded for one in made)
    )
    tracemalloc.start()
    journal = opened(None, place, bytes_max=4 << 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert journal.next == first + each
    assert peak < 10 << 20
    assert journal.backlog(END).messages == first + each - 1
    journal.close()


@pytest.mark.parametrize("gone", ["directory", "messages", "moved", "a file instead", "a copy instead"])
def test_files_that_go_while_it_is_open_are_told(place: str, gone: str) -> None:
    journal, there = opened(None, place), Path(place)
    append(journal, numbered(1))
    if gone == "messages":
        (there / name_of(1)).unlink()
    elif gone in ("moved", "a copy instead"):
        there.rename(f"{place}-away")
    else:
        shutil.rmtree(place)
    if gone == "a file instead":
        there.touch()
    elif gone == "a copy instead":
        shutil.copytree(f"{place}-away", place)
    words = f"the journal {place} was deleted or moved away while it was open, with 6 messages: put it back"
    with pytest.raises(JournalGone, match=words):
        journal.check()
    if gone == "moved":
        Path(f"{place}-away").rename(place)
        journal.check()
        append(journal, numbered(1, first=2))
        assert len(everything(journal)) == 7
    with contextlib.suppress(OSError):
        journal.close()


def test_notes_that_are_deleted_while_they_are_open_are_written_anew(place: str) -> None:
    journal = opened(None, place)
    append(journal, numbered(4))
    journal.acknowledge(END, [(1, 2)])
    for name in (ACKNOWLEDGED, COUNTS):
        (Path(place) / name).unlink()
    journal.acknowledge(END, [(3, 3)])
    journal.close()
    journal = opened(None, place)
    assert journal.backlog(END).messages == journal.next - 4
    journal.close()
