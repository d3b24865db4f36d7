"""Writing many frames at once gives what writing one by one does, and the ledger balances."""

import asyncio
import random
import socket
from asyncio import get_running_loop
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridges.items import FD, STATE, SWITCH, CanFrame
from bridges.media.can.direct import DirectSender
from bridges.media.can.echo import Echoes
from bridges.media.can.medium import Can
from bridges.media.can.outbox import Outbox
from bridges.media.can.own_socket import SocketPort, outbox_of
from bridges.media.can.shared import Shared
from bridges.media.can.socketcan import pack_frame, unpack_frame
from bridges.media.can.spoken import TranslatedVoice
from bridges.media.can.state import BusState
from bridges.media.can.strangers import Strangers
from bridges.media.can.subjects import Subjects
from bridges.media.can.transfers import CyphalNode, TransferVoice
from bridges.media.can.voice import Voice
from bridges.media.shedding import Shed
from bridges.media.subject import Subject
from bridges.packed import FD_BYTES
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.translator import Translator
from bus.ledger import Stats
from tests.bridges.protocols.spoken_support import message
from tests.bridges.protocols.spoken_support import wire as wired
from tests.bridges.support import MESSAGE

SUBJECTS = {"engine/rpm": Subject(subject=4100), "engine/temp": Subject(subject=4101)}
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


class Bus:
    """python-can's SocketcanBus, as far as a port uses it."""

    channel = "pair"

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def shutdown(self) -> None:
        self.socket.close()


def random_frame(chance: random.Random) -> CanFrame:
    if chance.random() < 0.5:
        return chance.randrange(1 << 29), chance.randbytes(chance.randrange(9)), 0
    marks = FD | chance.choice((0, SWITCH)) | chance.choice((0, STATE))
    return chance.randrange(1 << 29), chance.randbytes(chance.choice((0, 8, 64))), marks


def came(theirs: socket.socket) -> list[bytes]:
    found = list[bytes]()
    while True:
        try:
            found.append(theirs.recv(FD_BYTES))
        except BlockingIOError:
            return found


@pytest.mark.parametrize("seed", range(3))
def test_many_at_once_are_the_same_frames_as_far_as_there_is_room(pair: Pair, seed: int) -> None:
    chance, outbox, sent = random.Random(seed), Outbox(pair[0]), list[bytes]()
    for _ in range(20):
        frames = [random_frame(chance) for _ in range(chance.randrange(1, 90))]
        try:
            count = outbox.send(frames)
        except BlockingIOError:
            count = 0
        assert 0 <= count <= min(len(frames), Outbox.SLOTS)
        sent += map(pack_frame, frames[:count])
        if chance.random() < 0.2:
            assert came(pair[1]) == sent
            sent.clear()
    assert came(pair[1]) == sent
    pair[0].close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        outbox.send([(1, b"", 0)])


def test_a_socket_with_a_send_of_its_own_keeps_it(pair: Pair) -> None:
    class Own(socket.socket):
        """A socket that sends in its own way."""

    with Own(fileno=pair[0].detach()) as ours:
        assert outbox_of(ours) is None
        frames = [(1, b"", 0), (2, b"", 0)]
        assert SocketPort(Bus(ours)).write_some(frames) == 2
        assert [unpack_frame(raw) for raw in came(pair[1])] == frames


def shared(**options: Any) -> Shared:
    made = Can(channel="x", node=1, **options)
    return Shared("can", made, Stats(), Shed(age_s=60.0), 6, BusState(), Echoes())


def raw_voice(here: Shared) -> Voice:
    made: Translator[CanFrame] = Raw(root=("car",), send=("all",)).translator(wired("frames"))
    return TranslatedVoice(here, made, (), False, Strangers("can", "", (), False))


def transfer_voice(here: Shared) -> TransferVoice:
    return TransferVoice(here, CyphalNode(1, subjects=Subjects(here.options.pattern_subjects)))


def reading(number: int, name: str = "rpm") -> bytes:
    return message(f"engine/{name}", number.to_bytes(2, "big"))


@pytest.mark.parametrize("fd", [False, True])
def test_transfers_of_one_frame_are_the_same_in_a_run(fd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.randrange", lambda most: 30)
    voices = [transfer_voice(shared(subjects=SUBJECTS, fd=fd)) for _ in range(2)]
    messages = [reading(number, ("rpm", "temp")[number % 3 == 0]) for number in range(8)]
    each = [frame for one in messages for frame in voices[0].encode(one, 0).items]
    assert voices[1].run(messages, 0) == voices[1].run(messages, 0) == each
    voices[1].ran(3)  # the driver took no more: the others have their numbers all the same
    assert voices[1].run(messages[3:], 0) == each[3:]
    assert voices[1].encode(messages[3], 0).items == each[3:4]


def test_a_message_of_more_frames_is_no_run() -> None:
    voice = transfer_voice(shared(subjects=SUBJECTS))
    assert voice.run([reading(1), MESSAGE], 0) is None
    assert voice.run([reading(1), message("engine/rpm", bytes(8))], 0) is None


def test_raw_frames_are_the_same_in_a_run() -> None:
    voice = raw_voice(shared(fd=True))
    messages = [message(f"car/0x{number:x}", bytes(number % 9)) for number in range(20)]
    assert voice.run(messages, 0) is None  # each is looked at once
    each = [frame for one in messages for frame in voice.encode(one, 0).items]
    assert voice.run(messages, 0) == each
    assert voice.run([*messages, message("other/0x1")], 0) is None
    classic = raw_voice(shared())
    assert classic.encode(message("car/0x1", bytes(12)), 0).why == "fd on classic"
    assert classic.run([message("car/0x1", bytes(12))], 0) is None


@pytest.mark.parametrize("make", [raw_voice, transfer_voice])
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_each_frame_is_written_once_and_in_order(
    pair: Pair, make: Callable[[Shared], Voice], seed: int
) -> None:
    """Bus-off, a full driver, a shutdown with frames still waiting: the ledger balances at each step."""
    chance, here, offered = random.Random(seed), shared(subjects=SUBJECTS), list[bytes]()
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    sender = DirectSender(here, SocketPort(Bus(pair[0])), make(here), get_running_loop(), pytest.fail)
    root, wire, driver = "car/0x1" if make is raw_voice else "engine/rpm", list[CanFrame](), deque[CanFrame]()
    tails = list[int]()
    for _ in range(300):
        what = chance.choice(("put", "put", "transmit", "transmit", "off", "on", "purge", "turn"))
        if what == "put":
            new = [message(root, (len(offered) + n).to_bytes(2, "big")) for n in range(chance.randrange(9))]
            offered += new
            here.stats.offered += len(new)
            sender.put(new)
        elif what == "off" and chance.random() < 0.2:
            sender.hold("bus off")
        elif what == "on":
            sender.resume()
        elif what == "purge" and chance.random() < 0.2:
            sender.purge("closed")
        elif what == "turn":
            await asyncio.sleep(0)
        new_frames = [frame for frame in map(unpack_frame, came(pair[1])) if frame is not None]
        driver += new_frames
        tails += [frame[1][-1] for frame in new_frames]
        assert len(sender._flight) <= min(6, len(driver))  # noqa: SLF001
        if what == "transmit":
            leaving = [driver.popleft() for _ in range(min(len(driver), chance.randrange(8)))]
            wire += leaving
            sender.confirm(leaving)
            sender.pump()
        assert here.stats.balance() == 0
        assert here.stats.queued >= len(sender._flight)  # noqa: SLF001
    sender.close("closed")
    assert (here.stats.balance(), here.stats.queued, here.stats.queued_bytes) == (0, 0, 0)
    numbers = [int.from_bytes(data[:2], "big") for _, data, _ in wire]
    assert numbers == sorted(set(numbers))
    if make is transfer_voice:
        assert [tail & 31 for tail in tails] == [(tails[0] + n) & 31 for n in range(len(tails))]
    assert 0 < here.stats.sent <= len(wire)
