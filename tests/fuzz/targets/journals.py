"""Targets: records of durable trunks, segments of a journal on disk, its notes and its identity."""

from random import Random
from typing import Final

from bus.journal.errors import JournalError, RecordError
from bus.journal.identity import NAME, read_identity
from bus.journal.notes import Notes, parse
from bus.journal.record import Record, decode, encode, measure
from bus.journal.segment import Head, name_of, pack_head
from bus.journal.verify import records, verify
from bus.wire.batch import Batch, from_payloads, payloads
from tests.bus.journal.disk import Disk, Inode
from tests.fuzz.target import Pieces, Target

_BODIES: Final = ([b"one", b"two"], [b"x" * 56] * 40, [bytes(5000)], [b""])


def _records() -> list[Record]:
    made = list[Record]()
    for bodies in _BODIES:
        for origin, ends in ((None, None), ((7, 3), None), ((1 << 63, 9), 5)):
            number = made[-1].last + 1 if made else 1
            made += encode(from_payloads(bodies).data, number, 10**12, origin, ends)
    return made


def _record(pieces: Pieces) -> object:
    """Decode a record as one that came over a wire, and give its messages out."""
    data = b"".join(pieces)
    record = decode(data)
    assert measure(data) == len(record.encoded)
    bodies = payloads(Batch(record.messages, record.count))
    assert len(bodies) == record.count
    return record, bodies


def _disk(name: str, data: bytes) -> Disk:
    files = Disk(Random(1))
    files.names[f"/j/{name}"] = Inode(bytearray(data))
    return files


def _segment(pieces: Pieces) -> object:
    files = _disk(name_of(1), b"".join(pieces))
    found = [(record.number, record.count) for record in records("/j", files)]
    ends = [0, *(edge for number, count in found for edge in (number, number + count - 1))]
    assert ends == sorted(ends)
    return found, verify("/j", files)


def _segment_grown(n: int) -> list[bytes]:
    """Return segments whose damage looks like the beginnings of many records."""
    head = pack_head(Head(1, 1, 0))
    many = bytes.fromhex("bc000002 00000100") + bytes(28)
    return [head + b"\0" + b"\xbc" * n, head + b"\0" + many * n]


def _notes(pieces: Pieces) -> object:
    data = b"".join(pieces)
    files = _disk("received", data)
    notes = Notes(files, "/j/received")
    notes.open()
    assert (notes.sets, notes.damaged) == parse(data)
    again = Notes(files, "/j/received")
    again.open()
    assert (again.sets, again.damaged) == (notes.sets, 0)
    return {name: list(held) for name, held in notes.sets.items()}


def _notes_seeds() -> list[bytes]:
    files = _disk("received", b"")
    notes = Notes(files, "/j/received")
    notes.open()
    for first, last in ((1, 5), (9, 9), (6, 8), (1 << 63, (1 << 64) - 1)):
        notes.add("00000000000000ff", first, last)
        notes.add('a "name" of\nüñ', first, last)
    notes.write()
    return [bytes(files.names["/j/received"].cache)]


def _identity(pieces: Pieces) -> object:
    return read_identity(_disk(NAME, b"".join(pieces)), "/j")


def _identity_seeds() -> list[bytes]:
    from tests.bus.journal.support import disk, opened

    files = disk()
    opened(files).close()
    return [bytes(files.names[f"/j/{NAME}"].cache)]


TARGETS: Final = (
    Target(
        "record",
        "records of durable trunks",
        _record,
        lambda: [record.encoded for record in _records()],
        (RecordError,),
        whole=True,
    ),
    Target(
        "log",
        "segments of a journal",
        _segment,
        lambda: [pack_head(Head(1, 1, 0)) + b"".join(record.encoded for record in _records())],
        whole=True,
        grown=_segment_grown,
        inputs=500,
        why="0.5 ms an input: all of a journal is verified and read",
    ),
    Target(
        "notes",
        "notes of a journal",
        _notes,
        _notes_seeds,
        whole=True,
        inputs=500,
        why="1 ms an input: a file is read, written anew and read again",
    ),
    Target("identity", "identities of journals", _identity, _identity_seeds, (JournalError,), whole=True),
)
