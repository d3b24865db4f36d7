"""The node in C on CAN, a pair, streams and I2C: its bytes and verdicts are those of the gateway's codecs."""

from collections.abc import Iterable
from itertools import product
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.can.codec import Reassembler, can_id, segment
from bridges.media.i2c.mailbox_target import Target
from bridges.media.tcp.frames import cut
from bridges.media.uart.codec import encode
from bridges.media.uart.poll import DONE, POLL, PolledNode, control
from bus.embedded.buscoupler_node import bare
from bus.wire.batch import payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack, unpack
from tests.bridges.support import SIZES, frame
from tests.bus.embedded.cnode_support import SLOTS, BoxBoard, CanBoard, PairBoard, TcpBoard, build
from tests.bus.embedded.wires import Wires

U32 = st.integers(0, 0xFFFFFFFF)
NAMES = st.lists(U32, max_size=255)
DATA = st.integers(0, 2048).map(lambda size: bytes(at * 7 & 255 for at in range(size)))
SHORT = st.builds(pack, st.just(1), st.lists(U32, max_size=3), st.binary(max_size=70))
ENVELOPES = st.builds(
    lambda content, flags: b"\xe1" + bytes((flags,)) + wrap(content, Envelope(7, 8))[2:],
    SHORT,
    st.sampled_from((8, 8, 16)),
)
MESSAGES = SHORT | ENVELOPES | st.binary(min_size=1, max_size=30)
STEP_MS = 125  # exact as a fraction of a second, so that both ends compute alike
PAUSES = st.sampled_from((0, 0, 0, 0, 0, 0, 1, 8, 9, 16, 17))


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the node, built here, and its cffi."""
    return build(tmp_path_factory.mktemp("cnode"))


def parts(messages: Iterable[bytes]) -> tuple[list[tuple[tuple[int, ...], bytes]], int]:
    """Return tokens and data of messages, and the number of those without a frame."""
    frames = [bare(message) for message in messages]
    return [unpack(frame)[1:] for frame in frames if frame is not None], frames.count(None)


@given(NAMES, DATA, st.booleans())
def test_transfers_are_the_gateways(c: Any, names: list[int], data: bytes, fd: bool) -> None:
    board = CanBoard(c, 5, fd)
    for transfer_id in range(2):
        board.sent.clear()
        assert board.publish(names, data) == 0
        assert board.sent == segment(pack(1, names, data), transfer_id, fd)
    assert set(board.ids) == {can_id(0x1234, 5)}


@pytest.mark.parametrize("fd", [False, True])
def test_transfers_of_all_lengths_are_the_gateways(c: Any, fd: bool) -> None:
    board = CanBoard(c, 127, fd)
    for size in range(200):
        board.sent.clear()
        board.publish([], bytes(range(size)))
        assert board.sent == segment(pack(1, [], bytes(range(size))), size, fd)


Sent = tuple[int, int, bytes]
"""A CAN frame on its way: steps of time before it, identifier and data."""


@st.composite
def can_traffic(draw: st.DrawFn) -> list[Sent]:
    """Return frames of up to as many nodes as there are slots, interleaved and damaged."""
    lanes = []
    for node in range(1, 1 + draw(st.integers(1, SLOTS))):
        transfers = draw(
            st.lists(st.tuples(MESSAGES, st.sampled_from((0, 0, 1, 31)), st.booleans()), max_size=4)
        )
        lanes.append([(can_id(0x1234, node), data) for message in transfers for data in segment(*message)])
    traffic: list[Sent] = []
    while any(lanes):
        lane = draw(st.sampled_from([lane for lane in lanes if lane]))
        traffic += _damaged(*lane.pop(0), draw(st.integers(0, 40)), draw(PAUSES))
    return traffic


def _damaged(identifier: int, data: bytes, chance: int, pause: int) -> list[Sent]:
    whole = (pause, identifier, data)
    damages: dict[int, list[Sent]] = {
        1: [],
        2: [whole, (0, identifier, data)],
        3: [(pause, identifier, data[:-1] + bytes((data[-1] ^ 0x20,)))],
        4: [(pause, identifier, data[:-1] + bytes((data[-1] ^ 0x40,)))],
        5: [(pause, identifier, data[:-1] + bytes((data[-1] ^ 0x80,)))],
        6: [(pause, identifier, data[:-1] + bytes((data[-1] ^ 1,)))],
        7: [(pause, identifier, data[-3:])],
        14: [(pause, identifier, data[-3:])],
        13: [whole, (0, identifier, bytes((data[0] ^ 4,)) + data[1:])],
        8: [(pause, identifier, bytes((data[0] ^ 4,)) + data[1:])],
        9: [(pause, identifier | 1 << 24, data), whole],
        10: [(pause, identifier ^ 1 << 8, data), whole],
        11: [(pause, identifier | 1 << 25, data), (pause, identifier | 1 << 7, data), whole],
        12: [(pause, identifier, b""), whole],
    }
    return damages.get(chance, [whole])


@given(can_traffic())
def test_every_can_frame_gets_the_gateways_verdict(c: Any, traffic: list[Sent]) -> None:
    board, gateway, now, messages = CanBoard(c), Reassembler(), 0, []
    board.subscribe([])
    for pause, identifier, data in traffic:
        now += pause * STEP_MS
        board.feed(identifier, data, now)
        message = gateway.feed(now / 1000, identifier, data)
        messages += [] if message is None else [message]
    frames, rejected = parts(messages)
    assert board.frames == frames
    assert board.shared.rejected == rejected + gateway.rejected.pop("malformed", 0)
    assert board.rejected() == gateway.rejected


def test_every_sequence_of_three_frames_of_a_transfer_gets_the_gateways_verdict(c: Any) -> None:
    board, subject = CanBoard(c), can_id(0x1234, 9)
    halves = [data[:-1] for data in segment(pack(1, [7], b"abcd"), 0)]
    assert [len(half) for half in halves] == [7, 7]
    tails = [
        sot | eot | toggle | tid
        for sot in (0, 128)
        for eot in (0, 64)
        for toggle in (0, 32)
        for tid in (0, 1)
    ]
    symbols = [half + bytes((tail,)) for half in halves for tail in tails]
    for sequence in product(symbols, repeat=3):
        board.begin()
        gateway = Reassembler()
        found = [gateway.feed(0, subject, data) for data in sequence]
        for data in sequence:
            board.feed(subject, data, 0)
        assert board.shared.heard == 3 - found.count(None), sequence
        board.shared.rejected = board.shared.rejected - gateway.rejected.pop("malformed", 0)
        assert (board.shared.rejected, board.rejected()) == (0, gateway.rejected), sequence


def test_a_can_message_of_any_length_is_joined(c: Any) -> None:
    board, subject = CanBoard(c), can_id(0x1234, 9)
    board.subscribe([])
    for transfer_id, size in enumerate(SIZES):
        for fd in (False, True):
            for data in segment(frame(size), transfer_id * 2 + fd, fd):
                board.feed(subject, data, 0)
    assert board.frames == [unpack(frame(size))[1:] for size in SIZES for _ in range(2)]


def test_more_interleaved_nodes_than_slots_are_counted_and_a_slot_is_free_again(c: Any) -> None:
    board, transfer = CanBoard(c), segment(pack(1, [1], b"0123456789"), 0)
    board.subscribe([])
    for data in transfer:
        for node in range(1, SLOTS + 2):
            board.feed(can_id(0x1234, node), data, 0)
    assert len(board.frames) == SLOTS
    assert board.rejected() == {"busy": 1, "orphan": len(transfer) - 1}
    for data in transfer:
        board.feed(can_id(0x1234, 99), data, 1)
    assert len(board.frames) == SLOTS + 1
    board.feed(can_id(0x1234, 100), transfer[0], 2)  # it stands still, and loses its slot
    for node in range(SLOTS):
        for data in transfer:
            board.feed(can_id(0x1234, 50 + node), data, 1100)
    assert len(board.frames) == 2 * SLOTS + 1


def test_a_frame_in_the_middle_that_is_not_full_ends_its_transfer(c: Any) -> None:
    board, transfer = CanBoard(c), segment(pack(1, [1], b"0123456789"), 0)
    for data in (transfer[0], transfer[1][-7:], transfer[2]):
        board.feed(can_id(0x1234, 9), data, 0)
    assert board.rejected() == {"width": 1, "orphan": 1}


def test_a_small_buffer_skips_what_is_longer(c: Any) -> None:
    board = CanBoard(c, capacity=SLOTS * 30)
    board.subscribe([])
    for transfer_id, size in enumerate((28, 29, 28)):
        for data in segment(frame(size), transfer_id):
            board.feed(can_id(0x1234, 9), data, 0)
    assert [len(data) for _, data in board.frames] == [len(unpack(frame(28)).data)] * 2
    assert board.rejected() == {"oversize": 1}


def test_a_driver_that_refuses_is_told(c: Any) -> None:
    can, tcp, pair = CanBoard(c), TcpBoard(c), PairBoard(c, 5)
    can.refuses = tcp.refuses = pair.refuses = True
    assert (can.publish([1], b"x" * 9), tcp.publish([1], b"x")) == (-3, -4)
    tcp.refuses = False
    assert (tcp.publish([1], b"x"), tcp.feed(pack(1, [], b"")), tcp.sent) == (-4, -4, [])
    tcp.call("connected")
    assert tcp.publish([1], b"x") == 0
    assert b"".join(tcp.sent) == pack(1, [1], b"x")
    pair.publish([1], b"x")
    pair.feed(encode(control(5, POLL)), 0)
    assert pair.call("answer", 1) == -3


@given(NAMES, DATA)
def test_a_stream_has_the_frames_as_they_are(c: Any, names: list[int], data: bytes) -> None:
    board = TcpBoard(c)
    assert board.publish(names, data) == 0
    assert b"".join(board.sent) == pack(1, names, data)


STREAMS = st.lists(SHORT | SHORT | SHORT | ENVELOPES | st.binary(max_size=5), max_size=6).map(b"".join)


@given(STREAMS, st.integers(1, 40))
def test_every_stream_gets_the_gateways_verdict(c: Any, stream: bytes, piece: int) -> None:
    board = TcpBoard(c)
    board.subscribe([])
    results = [board.feed(stream[at : at + piece]) for at in range(0, len(stream), piece)]
    batch, _, is_legal = cut(stream)
    messages = [] if batch is None else [bytes(message) for message in payloads(batch)]
    assert (board.frames, board.shared.rejected) == parts(messages)
    assert (-4 not in results) == is_legal


def test_every_short_stream_gets_the_gateways_verdict(c: Any) -> None:
    board = TcpBoard(c, 64)
    for stream in product((0, 1, 4, 8, 0xE1, 0xF0), repeat=5):
        board.call("connected")
        board.shared.heard = 0
        result = board.feed(bytes(stream))
        batch, _, is_legal = cut(bytes(stream))
        assert (board.shared.heard, result) == (batch.count if batch else 0, 0 if is_legal else -4), stream


def test_a_stream_goes_on_behind_a_message_that_is_too_long(c: Any) -> None:
    board = TcpBoard(c, 16)
    board.subscribe([])
    long = wrap(frame(3072), Envelope(1, 2))
    assert board.feed(frame(16) + frame(17) + long + frame(3000) + frame(16)) == 0
    assert [len(data) for _, data in board.frames] == [len(unpack(frame(16)).data)] * 2
    assert board.node.oversize == 3
    assert TcpBoard(c, 4).feed(long) == -4


LINES = st.one_of(
    st.sampled_from([control(address, op) for address in (5, 5, 5, 6) for op in (POLL, DONE)]).map(encode),
    MESSAGES.filter(lambda message: len(message) > 3).map(encode),
    st.binary(max_size=9),
)


@given(
    st.lists(st.tuples(LINES, st.sampled_from((0, 0, 1, 2, 3, 4))), max_size=12), st.lists(SHORT, max_size=4)
)
def test_a_polled_node_says_what_the_gateways_node_says(
    c: Any, heard: list[tuple[bytes, int]], messages: list[bytes]
) -> None:
    board, node, now, found = PairBoard(c, 5), PolledNode(5, 2 * STEP_MS / 1000, STEP_MS / 1000), 0, []
    board.node.turnaround_ms, board.node.answer_ms = STEP_MS, 2 * STEP_MS
    board.subscribe([])
    for message in messages:
        board.publish(list(unpack(message)[1]), unpack(message)[2])
    node.put(messages)
    for line, pause in heard:
        now += pause * STEP_MS
        assert board.step(now) == node.step(now / 1000)
        board.feed(line, now)
        found += node.hear(line, now / 1000)
    assert (board.frames, board.shared.rejected) == parts(found)


def test_a_polled_node_answers_in_time_only_and_its_queue_is_bounded(c: Any) -> None:
    board = PairBoard(c, 5)
    board.feed(encode(control(5, POLL)), 0xFFFFFFFF)
    assert [board.call("due", now) for now in (0xFFFFFFFF, 0)] == [0, 1]
    assert (board.step(0xFFFFFFFF), board.step(0)) == (b"", encode(control(5, DONE)))
    board.feed(encode(control(5, POLL)), 100)
    assert (board.step(121), board.step(121)) == (b"", b"")
    assert [board.publish([1], bytes(1000)) for _ in range(5)] == [0, 0, 0, -2, -2]
    assert board.publish([1], bytes(2049)) == -1


def test_a_polled_node_that_reads_late_keeps_silent_while_another_speaks(c: Any) -> None:
    board, node, now_ms = PairBoard(c, 5), PolledNode(5), 0
    mine, said = encode(control(5, POLL)), encode(frame(30))
    for behind, rest, answers in (
        (b"", b"", True),
        (b"\xff", b"", True),  # a glitch as the gateway's driver goes off
        (b"\0\x7f\xfe", b"", True),
        (encode(control(6, POLL))[:4], encode(control(6, POLL))[4:], False),
        (said[:20], said[20:], False),
    ):
        board.feed(mine + behind, now_ms)
        node.hear(mine + behind, now_ms / 1000)
        answer = board.step(now_ms + 2)
        assert node.step((now_ms + 2) / 1000) == answer == (encode(control(5, DONE)) if answers else b"")
        board.feed(rest + b"\0", now_ms + 3)
        node.hear(rest + b"\0", (now_ms + 3) / 1000)
        assert node.step((now_ms + 5) / 1000) == board.step(now_ms + 5) == b""
        now_ms += 100


def test_a_polled_node_does_not_hear_its_own_message_but_hears_an_equal_one(c: Any) -> None:
    board, poll = PairBoard(c, 5, echo=True), encode(control(5, POLL))
    board.subscribe([])
    board.publish([1], b"x")
    board.feed(poll, 0)
    said = board.step(1)
    board.feed(said + said, 2)
    assert board.frames == [((1,), b"x")]
    board.publish([1], b"x")
    board.feed(poll, 10)
    board.feed(board.step(11), 11 + 1251)
    assert len(board.frames) == 2


class BoxNode:
    """A board as `Wires` uses a mailbox: messages go in and out whole."""

    def __init__(self, c: Any, capacity: int = 3088) -> None:
        self.board, self.now_ms = BoxBoard(c, capacity), 0
        self.board.subscribe([])
        self.memory = self.board.ffi.buffer(self.board.memory, 64)

    def send(self, message: bytes) -> bool:
        _, names, data = unpack(message)
        return self.board.publish(list(names), data) == 0

    def poll(self) -> bytes | None:
        self.now_ms += 1
        self.board.poll(self.now_ms)
        frames, self.board.frames = self.board.frames, []
        return pack(1, *frames[0]) if frames else None


@pytest.mark.parametrize("fails", [0.0, 0.2])
def test_every_size_both_ways_through_the_mailbox(c: Any, fails: float) -> None:
    node = BoxNode(c)
    wires = Wires(node, fails)
    messages = [pack(1, *unpack(frame(size))[1:]) for size in SIZES]
    waiting = list(messages)
    for message in messages:
        if waiting and node.send(waiting[0]):
            waiting.pop(0)
        assert wires.send([message]) == ["sent"]
    for _ in range(100000):
        wires.turn()
        if waiting and node.send(waiting[0]):
            waiting.pop(0)
        if len(wires.up) == len(messages):
            break
    assert (wires.up, wires.down) == (messages, messages)


def test_the_mailbox_skips_what_is_longer_than_the_buffer_and_tells_when_it_wants_a_poll(c: Any) -> None:
    node = BoxNode(c, 68)
    wires = Wires(node)
    assert node.board.call("pending")
    fits, long = pack(1, [], bytes(60)), pack(1, [], bytes(61))
    assert wires.send([fits, long, frame(3072), fits]) == ["sent"] * 4
    assert wires.down == [fits, fits]
    assert node.board.drops("oversize") == {"oversize": 2}
    assert not node.board.call("pending")
    node.send(frame(20))
    wires.turn()
    assert node.board.call("pending")


Access = tuple[str, int, bytes, int]
ACCESSES = st.tuples(
    st.sampled_from(("link", "next", "next", "next", "next", "same", "ack", "ack", "wrong", "noise")),
    st.sampled_from((0, 1, 2, 3, 5, 18, 35, 200, 255)),
    st.binary(max_size=30),
    PAUSES,
)


LONG = SHORT | st.integers(40, 110).map(bytes) | st.binary(min_size=1, max_size=7)


@given(st.lists(ACCESSES, max_size=40), st.lists(SHORT, max_size=3), st.lists(LONG, max_size=3))
def test_every_access_to_the_mailbox_gets_the_gateways_verdict(
    c: Any, accesses: list[Access], out: list[bytes], messages: list[bytes]
) -> None:
    board, target, found = BoxBoard(c, 84), Target(message_bytes=80), []
    board.subscribe([])
    for message in out:
        board.publish(list(unpack(message)[1]), unpack(message)[2])
        target.send(message)
    transfers = [message + crc32(message).to_bytes(4, "little") for message in messages]
    now, at = 0, 0
    for kind, bits, noise, pause in [("link", 1, b"", 0), *accesses]:
        now += pause * STEP_MS
        sent = transfers[0][at : at + 30] if transfers else noise
        write, used = _write(kind, bits, sent, noise, bytes(target.memory), at, transfers)
        if used and transfers:
            at = 0 if at + 30 >= len(transfers[0]) else at + 30
            transfers = transfers if at else transfers[1:]
        found += target.written(now / 1000, 0x20 - len(write), write)
        board.ffi.buffer(board.memory, 64)[0x20 - len(write) : 0x20] = write
        board.poll(now)
        assert bytes(board.ffi.buffer(board.memory, 64)) == bytes(target.memory)
    assert (board.frames, board.shared.rejected) == parts(found)
    assert board.drops("orphan", "unfinished", "oversize", "too_short", "crc", "reset") == target.rejected
    assert board.node.unsent == sum(target.dropped.values())


def _write(
    kind: str, bits: int, sent: bytes, noise: bytes, memory: bytes, at: int, transfers: list[bytes]
) -> tuple[bytes, bool]:
    """Return what a controller writes up to register 1F, and whether it holds the next segment."""
    seen, mine = memory[0x20], memory[0x1F]
    ack = (seen & 0x20) >> 1
    if kind == "link":
        return bytes((0, bits % 16)), False
    if kind == "noise":
        return noise + bytes((bits & 31, bits)), False
    if kind in ("ack", "wrong"):
        return bytes((0, mine & 0x20 | ack ^ (0x10 if kind == "wrong" else 0) | seen & 15)), False
    toggle = ((seen & 0x10) << 1) ^ (0x20 if kind == "next" else 0)
    flags = (0 if at else 0x80) | (0x40 if not transfers or at + 30 >= len(transfers[0]) else 0)
    flags ^= (bits & 3) << 6 if bits < 4 else 0
    return sent + bytes((len(sent), flags | toggle | ack | seen & 15)), kind == "next"
