"""Targets of field media: serial lines, CAN, I2C, UDP multicast, and the kernel's news about interfaces."""

import os
from functools import cache
from struct import Struct
from types import SimpleNamespace
from typing import Any, Final
from zlib import crc32

from bridges.items import ERROR, EXTENDED, FD, KINDS
from bridges.media import rtnetlink
from bridges.media.can import codec as can
from bridges.media.can.group import datagram_of, frame_in
from bridges.media.can.python_can import BusPort
from bridges.media.can.slcan import BufferedLine
from bridges.media.can.socketcan import pack_frame, unpack_frame
from bridges.media.can.state import BusState
from bridges.media.can.subjects import COMPACT, Subjects, compact, compact_bytes
from bridges.media.i2c.mailbox_controller import Controller
from bridges.media.i2c.mailbox_target import Target as MailboxTarget
from bridges.media.ieee802154.numbering import Inbound
from bridges.media.multicast.datagram import Decoder as DatagramDecoder
from bridges.media.multicast.datagram import Encoder
from bridges.media.subject import Subject
from bridges.media.uart import codec as uart
from bridges.media.uart import poll, rfc2217
from bus.key_types import Names
from bus.wire.batch import payloads
from bus.wire.envelope import message_bytes
from tests.fuzz.target import Pieces, Target, recorded, records
from tests.fuzz.targets.streams import FRAMES, STAMPED

SUBJECTS: Final[dict[Names, Subject]] = {
    ("a", "b"): Subject(subject=4100),
    ("c",): Subject(subject=4101, data_bytes=3),
}
MESSAGES: Final = (*FRAMES, *STAMPED)


def line_seeds() -> list[bytes]:
    """Return messages as they are on a serial line."""
    coded = [uart.encode(message) for message in MESSAGES]
    polled = [uart.encode(poll.control(7, op)) for op in (poll.POLL, poll.DONE)]
    return [
        *coded,
        b"".join(coded),
        b"".join(polled),
        polled[0] + coded[0] + polled[1],
        coded[2][:-3] + coded[0],
    ]


def _uart(pieces: Pieces) -> object:
    decoder = uart.Decoder()
    return [message for piece in pieces for message in decoder.feed(piece)], decoder.rejected


def _master(pieces: Pieces) -> object:
    """Poll two nodes, without a clock: so pieces do not matter."""
    master = poll.Master({7: poll.NodeHealth(), 9: poll.NodeHealth()}, 1e-5)
    master.wrote(len(master.step(0.0, own=False) or b""), 0.0)  # type: ignore[arg-type]
    return [message for piece in pieces for message in master.hear(piece, 0.0)], master.nodes


def _node(pieces: Pieces) -> object:
    node = poll.PolledNode(7, queue_messages=2)
    found = [message for piece in pieces for message in node.hear(piece, 0.0)]
    return found, node.rejected, node.step(1.0)


def _telnet(pieces: Pieces) -> object:
    client = rfc2217.Client(115200)
    data = b"".join(map(client.feed, pieces))
    return data, bytes(client.replies), client.ready, client.refused, client.suspended


def _telnet_seeds() -> list[bytes]:
    values = ((101, (115200).to_bytes(4, "big")), (102, b"\x08"), (103, b"\x01"), (104, b"\x01"), (108, b""))
    answers = [
        b"\xff\xfa\x2c" + bytes((code,)) + rfc2217.escape(value) + b"\xff\xf0" for code, value in values
    ]
    agreed = b"\xff\xfd\x00\xff\xfd\x2c\xff\xfb\x03"
    return [
        agreed + b"".join(answers),
        *answers,
        b"a\xff\xffb" + answers[0],
        b"\xff\xfa\x2c\x6b\xff\xff\xff\xf0x",
    ]


@cache
def _slcan() -> tuple[Any, int, SimpleNamespace]:
    """Return an adapter of python-can, where to write what it reads, and the port that reads it."""
    from can.interfaces.slcan import slcanBus

    read, write = os.pipe()
    os.set_blocking(read, False)
    bus = slcanBus("loop://", sleep_after_open=0)
    bus.serialPortOrig.close()
    bus._is_shutdown = True  # noqa: SLF001 or it complains at the end
    return bus, write, SimpleNamespace(fileno=lambda: read, write_timeout=0, close=lambda: None)


def _slcan_lines(pieces: Pieces) -> object:
    """Give lines to an adapter that is new. Return its frames; what it cannot read is counted.

    A line that is too long is cut where a read ends, so pieces do matter there.
    """
    bus, write, line = _slcan()
    bus._buffer.clear()  # noqa: SLF001
    bus.serialPortOrig = BufferedLine(line)
    port = BusPort(bus)
    frames, faults = [], 0

    def unreadable() -> bool:
        nonlocal faults
        faults += 1
        return False

    for piece in pieces:
        os.write(write, piece[:4096])
        more = True
        while more:
            found, more, fault, stamps_ns = port.read(unreadable)
            assert len(stamps_ns) == len(found)
            assert not fault, fault
            frames += [(identifier, bytes(data), marks) for identifier, data, marks in found]
    return frames, faults


_CAN_HEAD: Final = Struct("=IB")
SECOND: Final = 128
"""A datagram or frame that begins with such a byte comes a second later than the one before."""


def _can_group(pieces: Pieces) -> object:
    """Read datagrams of a group. What is a frame is written, and read again as it was."""
    frames = [frame for piece in pieces if (frame := frame_in(piece)) is not None]
    assert all(frame_in(datagram_of(frame)) == frame for frame in frames if not frame[0] & ERROR)
    return frames


def _can_group_seeds() -> list[bytes]:
    return [datagram_of((0x123, b"12345678", 0)), datagram_of((0x1FFFFFFF | EXTENDED, bytes(64), 1))]


def _can(pieces: Pieces) -> object:
    """Read frames of SocketCAN as a link does: errors, or transfers of Cyphal."""
    state, subjects = BusState(), Subjects(SUBJECTS)
    others = {number: one.frame for number, one in subjects.of_number.items()}
    size_of = lambda payload: compact_bytes(payload, 0) or message_bytes(payload)  # noqa: E731
    reassembler = can.Reassembler(others=others, size_of=size_of)
    found, now = list[object](), 0.0
    for raw in records(b"".join(pieces)):
        frame = unpack_frame(raw)
        if frame is None:
            now += 1.0
        elif frame[0] & ERROR:
            found.append(state.feed(frame[0] & ~KINDS, frame[1]))
        else:
            message = reassembler.feed(now, frame[0] & ~KINDS, frame[1])
            found.append(subjects.expand(message) if message and message[0] == COMPACT else message)
    assert all(message_bytes(one) == len(one) for one in found if isinstance(one, bytes))
    return found, reassembler.rejected, state.state


def _can_seeds() -> list[bytes]:
    seeds = []
    for fd in (False, True):
        sent = [can.segment(message, n, fd) for n, message in enumerate(MESSAGES)]
        frames = [
            [pack_frame((EXTENDED | can.can_id(0x1234, 5), data, FD if fd else 0)) for data in parts]
            for parts in sent
        ]
        seeds += [recorded(*parts) for parts in frames]
        seeds.append(recorded(*_own_subjects(fd)))
    error = Struct("=IB3x8s").pack(ERROR | 0x244, 8, b"\0\x08" + bytes(4) + b"\x80\x90")
    return [*seeds, recorded(error, error[:9], error)]


def _own_subjects(fd: bool) -> list[bytes]:
    """Return frames of patterns with subjects of their own, with an envelope and without."""
    data, envelope = b"12345678", STAMPED[0][:12]
    zeros = can.padding(20) if fd else 0
    sent = [(number, data) for number in (4100, 4101)] + [(0x1234, compact(envelope, 4100, data, zeros))]
    return [
        pack_frame((EXTENDED | can.can_id(subject, 5), part, FD if fd else 0))
        for subject, payload in sent
        for part in can.segment(payload, 3, fd)
    ]


def _datagrams(pieces: Pieces) -> object:
    """Take datagrams of two senders. Their CRC is made right, because none that is wrong gets any further."""
    decoder, found, now_s = DatagramDecoder(), list[bytes](), 0.0
    for body in records(b"".join(pieces)):
        now_s += bool(body) and body[-1] == SECOND
        datagram = body + _crc(body)
        if (batch := decoder.feed([(datagram, len(body) & 1)], now_s)) is not None:
            found += payloads(batch)
    return found, decoder.rejected


def _radio(pieces: Pieces) -> object:
    """Take datagrams with numbers, of two radios. Their CRC is made right."""
    decoder, found = DatagramDecoder(), list[bytes]()
    inbound = Inbound(decoder.rejected)
    for body in records(b"".join(pieces)):
        opened = inbound.opened([(body + _crc(body), str(len(body) & 1))])
        if (batch := decoder.feed(opened, 0.0)) is not None:
            found += payloads(batch)
    return found, decoder.rejected


def _radio_seeds() -> list[bytes]:
    sent = [datagram[:-4] for datagram, _ in Encoder(108, 1, 1).pack(MESSAGES)]
    return [recorded(*(bytes((0, number)) + body for number, body in enumerate(sent))), recorded(*sent)]


def _crc(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little")


def _datagram_seeds() -> list[bytes]:
    encoder = Encoder(200, 1, 1)
    sent = [datagram for datagram, _ in encoder.pack(MESSAGES)]
    parts = [
        datagram for datagram, _ in encoder.pack([bytes((1, 0, 2, 0)) + bytes(512), b"\xe1" + STAMPED[2][1:]])
    ]
    run = [datagram for datagram, _ in encoder.pack([FRAMES[0]] * 12)]
    return [recorded(*(datagram[:-4] for datagram in some)) for some in (sent, parts, run, parts[:-1])]


_PATIENCE_S: Final = 30.0


def _mailbox(pieces: Pieces) -> object:
    """Answer each access of a controller with the next bytes; a byte of 255 lets it fail."""
    controller, found, now = Controller(), list[bytes | None](), 0.0
    data = b"".join(pieces)
    while data and now < _PATIENCE_S:
        access = controller.next(now)
        if access is None:
            now = controller.due_s
        elif data[:1] == b"\xff":
            controller.failed(now)
            data = data[1:]
        else:
            found.append(controller.done(now, data[: access.size].ljust(access.size, b"\0")))
            data = data[access.size :]
            if controller.ready:
                controller.send(now, FRAMES[2])
    return found, controller.inbox.rejected, controller.state


def _mailbox_seeds() -> list[bytes]:
    """Return what a target says to a controller that reads it, in both directions."""
    said = b""
    target, controller, now = MailboxTarget(), Controller(), 0.0
    for message in MESSAGES:
        target.send(message)
    for _ in range(80):
        access = controller.next(now)
        if access is None:
            now = controller.due_s
            continue
        answer = bytes(target.memory[access.register : access.register + access.size])
        said += answer
        controller.done(now, answer)
        target.written(now, access.register, access.data)
    return [said, said[:40], said[8:]]


def _mailbox_target(pieces: Pieces) -> object:
    """Let a controller write: records of a register and its bytes."""
    target, found = MailboxTarget(queue_bytes=4096), list[bytes]()
    target.send(FRAMES[2])
    for number, record in enumerate(records(b"".join(pieces))):
        found += target.written(number / 4, record[0] & 63 if record else 0, record[1:33])
    return found, target.rejected, bytes(target.memory)


def written_seeds() -> list[bytes]:
    """Return what a controller writes to a target: it links, and sends messages."""
    written: list[bytes] = []
    target, controller, now = MailboxTarget(), Controller(), 0.0
    for _ in range(120):
        if controller.ready:
            controller.send(now, MESSAGES[len(written) % len(MESSAGES)])
        access = controller.next(now)
        if access is None:
            now = controller.due_s
            continue
        controller.done(now, bytes(target.memory[access.register : access.register + access.size]))
        if not access.size:
            written.append(bytes((access.register,)) + access.data)
            target.written(now, access.register, access.data)
    return [recorded(*written[:many]) for many in (2, 8, len(written))]


def _netlink(pieces: Pieces) -> object:
    data = b"".join(pieces)
    return list(rtnetlink.parse(data)), rtnetlink.result(data)


def _netlink_seeds() -> list[bytes]:
    attribute = Struct("=HH")
    name, mtu = attribute.pack(9, 3) + b"eth0\0\0\0\0", attribute.pack(8, 4) + (1500).to_bytes(4, "little")
    link = Struct("=BxHiII").pack(0, 1, 2, 0x1043, 0) + name + mtu
    address = Struct("=BBBBI").pack(2, 24, 0, 0, 2) + attribute.pack(8, 2) + bytes((10, 0, 0, 1))
    messages = [(16, link), (17, link), (20, address), (21, address), (3, b""), (2, bytes(4))]
    made = [Struct("=IHHII").pack(16 + len(body), kind, 0, 1, 0) + body for kind, body in messages]
    return [*made, b"".join(made), rtnetlink.restart_request(3)]


TARGETS: Final = (
    Target("uart", "messages on a serial line", _uart, line_seeds),
    Target("rs485-master", "a shared pair, at its master", _master, line_seeds),
    Target("rs485-node", "a shared pair, at a node", _node, line_seeds),
    Target("rfc2217", "a serial port over Telnet", _telnet, _telnet_seeds),
    Target(
        "slcan",
        "lines of an slcan adapter",
        _slcan_lines,
        lambda: [
            b"T0412340584e00000080\r",
            b"t1232aabb\r" * 3,
            b"D04123405f" + b"00" * 64 + b"\r",
            b"\r\a" * 9,
        ],
        whole=True,
    ),
    Target("can", "SocketCAN frames: errors, and transfers of Cyphal", _can, _can_seeds, whole=True),
    Target("can-group", "CAN frames in datagrams of a group", _can_group, _can_group_seeds, whole=True),
    Target("multicast", "datagrams, and fragments of messages", _datagrams, _datagram_seeds, whole=True),
    Target("ieee802154", "datagrams of radios, with numbers", _radio, _radio_seeds, whole=True),
    Target(
        "mailbox",
        "what an I2C target answers its controller",
        _mailbox,
        _mailbox_seeds,
        whole=True,
    ),
    Target(
        "mailbox-target", "what a controller writes to its target", _mailbox_target, written_seeds, whole=True
    ),
    Target(
        "netlink",
        "the kernel's news about interfaces",
        _netlink,
        _netlink_seeds,
        whole=True,
    ),
)
