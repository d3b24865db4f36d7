"""Reading many frames at once gives what reading one by one does: frames, marks, order, counts."""

import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from bridges.items import FD, OWN, STATE, SWITCH, CanFrame
from bridges.media.can import own_socket
from bridges.media.can.inbox import NOTE_BYTES, SO_RXQ_OVFL, SO_TIMESTAMPNS, OneByOne
from bridges.media.can.many import SLOTS, Many
from bridges.media.can.own_socket import SocketPort, inbox_of
from bridges.media.can.socketcan import pack_frame, unpack_frame, unpack_frames
from bridges.packed import CLASSIC_BYTES, FD_BYTES

CHOICE = random.Random(39)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def classic() -> bytes:
    code = CHOICE.choice((0, 0, 9, 15))
    return pack_frame(
        (CHOICE.randrange(1 << 32), CHOICE.randbytes(8 if code else CHOICE.randrange(9)), code << 4)
    )


def fd() -> bytes:
    marks = FD | CHOICE.choice((0, SWITCH)) | CHOICE.choice((0, STATE))
    return pack_frame((CHOICE.randrange(1 << 32), CHOICE.randbytes(CHOICE.choice((0, 8, 64))), marks))


def damaged() -> bytes:
    return CHOICE.randbytes(CHOICE.choice((1, 15, 17, 71)))


KINDS = {
    "classic": (classic,),
    "FD": (fd,),
    "both": (classic, fd),
    "classic, damaged too": (classic, damaged),
    "any": (classic, fd, damaged),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 7, SLOTS - 1, SLOTS])
def test_many_at_once_are_the_same_frames(
    kind: str, count: int, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    sent = [CHOICE.choice(KINDS[kind])() for _ in range(count)]
    found: list[list[CanFrame | None]] = []
    for inbox in (Many(ours), OneByOne(ours)):
        for raw in sent:
            theirs.send(raw)
        read: list[CanFrame | None] = []
        while len(read) < count:
            read += inbox.read().frames
        found.append(read)
        with pytest.raises(BlockingIOError):
            inbox.read()
    assert found[0] == found[1] == [unpack_frame(raw) for raw in sent]


def test_each_frame_has_its_own_mark() -> None:
    for makers in (classic,), (fd,), (classic, fd, damaged):
        raws = [CHOICE.choice(makers)() for _ in range(50)]
        owns = [CHOICE.choice((0, OWN)) for _ in raws]
        data = b"".join(raw.ljust(FD_BYTES, b"\xaa") for raw in raws)
        expected = [unpack_frame(raw, own) for raw, own in zip(raws, owns, strict=True)]
        assert unpack_frames(data, [len(raw) for raw in raws], owns) == expected


@pytest.mark.parametrize("inbox", [Many, OneByOne])
def test_the_kernel_tells_when_each_frame_came_if_asked(
    inbox: type[Many] | type[OneByOne], pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    for is_asked in (0, 1):
        ours.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, is_asked)
        reads, before_ns = inbox(ours), time.time_ns()
        for _ in range(5):
            theirs.send(classic())
        after_ns, stamps_ns = time.time_ns(), list[int]()
        for _ in range(5 // min(5, reads.slots)):
            stamps_ns += reads.read().stamps_ns
        assert stamps_ns == sorted(stamps_ns)
        assert len(stamps_ns) == 5 * is_asked
        assert all(before_ns <= ns <= after_ns for ns in stamps_ns)


_STAMP = struct.pack("@Niill", 32, socket.SOL_SOCKET, SO_TIMESTAMPNS, 1_700_000_000, 123_456_789)
_DROPPED = struct.pack("@NiiI", 20, socket.SOL_SOCKET, SO_RXQ_OVFL, 7)
_OTHER = struct.pack("@Niill", 32, socket.SOL_SOCKET, 99, 1, 2)


@pytest.mark.parametrize(
    ("notes", "stamps_ns", "dropped"),
    [
        (b"", (), None),
        (_STAMP, (1_700_000_000_123_456_789,) * 3, None),
        (_DROPPED, (), 7),
        (_STAMP + _DROPPED, (1_700_000_000_123_456_789,) * 3, 7),
        (_OTHER, (), None),
        (_STAMP + _OTHER, (1_700_000_000_123_456_789,) * 3, None),
        (_DROPPED[:-4], (), None),
    ],
)
def test_time_and_count_are_read_from_the_notes_behind_the_last_frames(
    notes: bytes, stamps_ns: tuple[int, ...], dropped: int | None, pair: tuple[socket.socket, socket.socket]
) -> None:
    """In each place, after a frame whose notes were others; a real kernel never writes some of them."""
    ours, theirs = pair
    inbox, call = Many(ours), vars(Many(ours))["_call"]

    def call_and_note(*arguments: object) -> int:
        count = int(call(*arguments))
        for slot in range(count):
            at = slot * NOTE_BYTES
            inbox._notes[at : at + len(notes)] = notes  # noqa: SLF001
            inbox._note_sizes[slot] = len(notes)  # noqa: SLF001
        return count

    vars(inbox)["_call"] = call_and_note
    for _ in range(3):
        theirs.send(classic())
    found = inbox.read()
    assert (tuple(found.stamps_ns), found.dropped) == (stamps_ns, dropped)


def test_an_end_is_told_by_its_number(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    inbox = Many(ours)
    ours.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        inbox.read()


class Bus:
    """python-can's SocketcanBus, as far as a port uses it."""

    channel = "pair"

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock


@pytest.mark.parametrize("inbox", [Many, OneByOne])
def test_a_port_reads_all_in_order_and_counts_what_is_no_frame(
    inbox: type[Many] | type[OneByOne],
    pair: tuple[socket.socket, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = pair
    monkeypatch.setattr(own_socket, "inbox_of", inbox)
    reads, faults = SocketPort(Bus(ours)), list[bool]()
    sent = [CHOICE.choice((classic, fd, damaged))() for _ in range(90)]
    for raw in sent:
        theirs.send(raw)

    def note_fault() -> bool:
        faults.append(True)
        return False

    frames, more, fault, stamps_ns = reads.read(note_fault)
    assert list(stamps_ns) == []
    assert (more, fault) == (False, "")
    assert frames == [frame for frame in map(unpack_frame, sent) if frame is not None]
    assert len(faults) == sum(len(raw) not in (CLASSIC_BYTES, FD_BYTES) for raw in sent)
    theirs.send(b"none")
    assert reads.read(lambda: True)[2] == "lost: unreadable"


def test_without_the_call_frames_are_read_one_by_one(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(inbox_of(pair[0]), Many)
    with suppress(ImportError), monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "bridges.media.can.many", None)
        assert isinstance(inbox_of(pair[0]), OneByOne)
