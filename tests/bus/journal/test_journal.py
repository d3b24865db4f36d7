"""A journal: what is appended is there after it was opened again."""

from pathlib import Path

from bus.journal.journal import Group, Journal
from bus.wire.batch import Batch, from_payloads, payloads

TRUNK = ("plant", "gw-a", "hall")


def opened(path: Path, **options: object) -> Journal:
    journal = Journal(str(path), TRUNK, 64 << 20, consumers=["gw-b"])
    journal.open()
    return journal


def test_messages_are_there_after_a_start(tmp_path: Path) -> None:
    journal = opened(tmp_path / "trunk")
    data = from_payloads([b"one", b"two"]).keep()
    assert journal.append([Group(data, 7), Group(data, 8, (5, 100))]).first == 1
    journal.close()
    journal = opened(tmp_path / "trunk")
    read = journal.read(1, 4096)
    assert [(record.number, record.count, record.time_ms, record.origin) for record in read.records] == [
        (1, 2, 7, None),
        (3, 2, 8, (5, 100)),
    ]
    assert payloads(Batch(read.records[0].messages, 2)) == [b"one", b"two"]
    assert (read.following, read.damaged, read.gone) == (5, 0, 0)
    assert list(journal.known(5)) == [(100, 101)]
    journal.close()
