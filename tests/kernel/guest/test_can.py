"""The CAN link on vcan, with kernel filters, can-utils, and the open standard's own decoder."""

import socket
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from pycyphal2 import Instant
from pycyphal2.can._reassembly import Endpoint, Reassembler
from pycyphal2.can._wire import TransferKind, parse_frame

from bridges.media.can.codec import TID, can_id, segment
from bridges.media.can.transfers import LivingPipe
from bridges.media.subject import HEARTBEAT, Subject
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say
from tests.helpers.peers import until
from tests.kernel.guest.support import (
    PATIENCE_S,
    can_link,
    candump,
    cansend,
    dumped,
    ips,
    python,
    second_bus,
)

BOTH = pytest.mark.parametrize("fd", [False, True], ids=["classic", "fd"])
CHANNEL = "vcan0"
SUBJECT = 0x1234
# section 8 of the wire format: node 5, transfer-id 3
CLASSIC = ("e108f011a1b2c3a3", "d400000007020203", "0005112233445523", "66778868656c6c03", "6fb5ce63")
FD = "e108f011a1b2c3d40000000702020005112233445566778868656c6c6f0000e3"


@BOTH
async def test_every_size_crosses_in_order_and_nothing_comes_back(fd: bool) -> None:
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    with can_link(near, CHANNEL, 1, fd=fd) as a, can_link(far, CHANNEL, 2, fd=fd) as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        messages = [frame(size) for size in SIZES]
        say(near, mine, *messages)
        assert a.stats.balance() == 0
        await until(lambda: len(theirs.messages) == len(messages), PATIENCE_S)
        assert theirs.messages == messages
        say(far, theirs, MESSAGE)
        await until(lambda: len(mine.messages) == 1, PATIENCE_S)
        assert mine.messages == [MESSAGE]
        await until(lambda: a.stats.queued == b.stats.queued == 0, PATIENCE_S)
        assert a.stats.sent == b.stats.received == len(messages)
        assert a.stats.balance() == b.stats.balance() == 0
        assert a.stats.dropped == b.stats.dropped == {}
        assert "conflict" not in a.stats.rejected | b.stats.rejected


@BOTH
async def test_equal_frames_in_a_row_all_arrive(fd: bool) -> None:
    near, far = Hub(), Hub()
    theirs = recorder(far)
    with can_link(near, CHANNEL, 1, fd=fd) as a, can_link(far, CHANNEL, 2, fd=fd) as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        say(near, None, *[frame(20)] * 50)
        await until(lambda: len(theirs.messages) == 50, PATIENCE_S)
        assert theirs.messages == [frame(20)] * 50


@BOTH
async def test_two_processes_of_one_host_hear_each_other(fd: bool) -> None:
    """The kernel marks frames of this host's other programs as not received (MSG_DONTROUTE)."""
    hub = Hub()
    heard = recorder(hub)
    async with python("can_echo", CHANNEL, "9", *(["fd"] if fd else [])):
        with can_link(hub, CHANNEL, 1, fd=fd) as link:
            await until(lambda: link.state == "up", PATIENCE_S)
            messages = [frame(size) for size in (4, 20, 64, 508, 3072)]
            say(hub, heard, *messages)
            await until(lambda: len(heard.messages) == len(messages), PATIENCE_S)
            assert heard.messages == messages
            assert "conflict" not in link.stats.rejected


def raw_socket() -> socket.socket:
    raw = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
    raw.bind((CHANNEL,))
    return raw


def raw_frame(identifier: int, data: bytes) -> bytes:
    return struct.pack("=IB3x8s", identifier, len(data), data)


async def test_the_kernel_keeps_foreign_frames_away() -> None:
    hub = Hub()
    heard = recorder(hub)
    foreign = [
        0x123,  # an 11-bit identifier
        can_id(SUBJECT, 9) & 0x7FF,
        can_id(SUBJECT + 1, 9) | socket.CAN_EFF_FLAG,
        can_id(SUBJECT, 9) | 1 << 25 | socket.CAN_EFF_FLAG,  # a service
    ]
    with can_link(hub, CHANNEL, 1) as link, raw_socket() as stranger:
        await until(lambda: link.state == "up", PATIENCE_S)
        before = dict(link.stats.rejected)
        for identifier in foreign * 50:
            stranger.send(raw_frame(identifier, bytes(8)))
        for data in segment(MESSAGE, 7):
            stranger.send(raw_frame(can_id(SUBJECT, 9) | socket.CAN_EFF_FLAG, data))
        await until(lambda: len(heard.messages) == 1, PATIENCE_S)
        assert heard.messages == [MESSAGE]
        assert link.stats.rejected == before


async def test_heartbeats_are_confirmed_and_of_others_only_those_with_our_id_come() -> None:
    subjects = {"engine/rpm": Subject(subject=4100)}
    with can_link(Hub(), CHANNEL, 5, subjects=subjects) as link, raw_socket() as stranger:
        stranger.setblocking(False)
        heard = list[int]()

        def came() -> int:
            with suppress(BlockingIOError):
                heard.append(int.from_bytes(stranger.recv(16)[:4], "little"))
            return len(heard)

        await until(lambda: came() == 3, PATIENCE_S)
        own = can_id(HEARTBEAT, 5) | socket.CAN_EFF_FLAG
        assert set(heard) == {own}
        for identifier in (own + 4, own):
            stranger.send(raw_frame(identifier, bytes(7) + b"\xe0"))
        await until(lambda: link.stats.rejected == {"conflict": 1}, PATIENCE_S)
        assert isinstance(link.pipe, LivingPipe)
        await until(lambda: not link.pipe._outbound.is_flying, PATIENCE_S)  # type: ignore[union-attr]  # noqa: SLF001


@pytest.mark.parametrize(
    ("frame_", "state"),
    [
        ("20000004#0010000000007F00", "error-passive"),
        ("20000004#0008000000006000", "error-warning"),
        ("20000040#0000000000000000", "bus-off"),
    ],
)
async def test_error_frames_of_the_kernel_are_states(frame_: str, state: str) -> None:
    """Error frames (linux/can/error.h) report a controller's state; on vcan any program may send them."""
    hub = Hub()
    heard = recorder(hub)
    with can_link(hub, CHANNEL, 1) as link:
        await until(lambda: link.condition == "error-active", PATIENCE_S)
        await cansend(CHANNEL, frame_)
        await until(lambda: link.bus.entered.get(state) == 1, PATIENCE_S)
        await cansend(CHANNEL, "20000100#0000000000000000")  # error class "controller restarted"
        await until(lambda: link.condition == "error-active", PATIENCE_S)
        say(hub, heard, MESSAGE)
        await until(lambda: link.stats.sent == 1, PATIENCE_S)
        assert link.bus.restarts == 1
        assert link.losses == 0


SENT = 40_000  # the queue of a link holds some 11,000 frames


def dropped_on_the_way(interface: str) -> int:
    """Return the frames that a busy kernel dropped before they came to the queue of any program."""
    return int(Path(f"/sys/class/net/{interface}/statistics/rx_dropped").read_text())


async def test_frames_that_the_kernel_drops_from_a_full_queue_are_counted() -> None:
    hub = Hub()
    heard = recorder(hub)
    with can_link(hub, CHANNEL, 1) as link, raw_socket() as flood:
        await until(lambda: link.state == "up", PATIENCE_S)
        orphan = raw_frame(can_id(SUBJECT, 8) | socket.CAN_EFF_FLAG, bytes(7) + b"\0")
        before = dropped_on_the_way(CHANNEL)
        for _ in range(SENT):  # in one burst, during which the loop does not read
            flood.send(orphan)
        await until(lambda: link.stats.rejected.get("orphan", 0) > 0, PATIENCE_S)
        for data in segment(MESSAGE, 7):
            flood.send(raw_frame(can_id(SUBJECT, 9) | socket.CAN_EFF_FLAG, data))
            await until(lambda: link.stats.rejected.get("orphan", 0) > 0, PATIENCE_S)
        await until(lambda: bool(heard.messages) and link.stats.rejected.get("overrun", 0) > 0, PATIENCE_S)

        def known() -> int:
            lost = dropped_on_the_way(CHANNEL) - before
            return link.stats.rejected["orphan"] + link.stats.rejected["overrun"] + lost

        await until(lambda: known() >= SENT, PATIENCE_S)  # a busy kernel may bring some last
        assert known() == SENT


async def test_an_interface_that_carries_no_fd_any_more_or_is_made_again_is_waited_for() -> None:
    second_bus()
    hub = Hub()
    with can_link(hub, "vcan1", 1, fd=True) as link:
        await until(lambda: link.state == "up", PATIENCE_S)
        ips("link set vcan1 down", "link set vcan1 mtu 16", "link set vcan1 up")
        await until(lambda: "vcan1 carries no CAN FD" in link.fault, PATIENCE_S)
        say(hub, None, MESSAGE)
        ips("link del vcan1")
        await until(lambda: "No such device" in link.fault, PATIENCE_S)
        second_bus()
        await until(lambda: link.state == "up", PATIENCE_S)
        say(hub, None, MESSAGE)
        await until(lambda: link.stats.sent == 1, PATIENCE_S)
        assert (link.stats.dropped, link.losses) == ({}, 1)
        assert {name: account.stats.offered for name, account in hub.accounts().items()} == {link.name: 2}


@pytest.mark.parametrize(
    "frames",
    [[f"10723405#{data}" for data in CLASSIC], [f"10723405##1{FD}"]],
    ids=["classic", "fd"],
)
async def test_what_cansend_sends_arrives(frames: list[str]) -> None:
    hub = Hub()
    heard = recorder(hub)
    with can_link(hub, CHANNEL, 1, fd=True) as link:
        await until(lambda: link.state == "up", PATIENCE_S)
        for words in frames:
            await cansend(CHANNEL, words)
        await until(lambda: len(heard.messages) == 1, PATIENCE_S)
        assert heard.messages == [MESSAGE]


class Standard:
    """The open standard's own decoder (pycyphal2), fed with frames."""

    def __init__(self, fd: bool) -> None:
        self.payloads: list[tuple[int, bytes]] = []
        self._mtu = 64 if fd else 8
        self._endpoint = Endpoint(
            TransferKind.MESSAGE_13,
            SUBJECT,
            lambda when, source, priority, payload: self.payloads.append((source, payload)),
        )

    def feed(self, identifier: int, data: bytes) -> None:
        parsed = parse_frame(identifier, data, mtu=self._mtu)
        assert parsed is not None
        assert (parsed.kind, parsed.port_id) == (TransferKind.MESSAGE_13, SUBJECT)
        Reassembler.ingest(self._endpoint, 0, Instant(ns=0), parsed)


@BOTH
async def test_candump_sees_the_codecs_frames_and_the_standards_decoder_reads_them(fd: bool) -> None:
    hub = Hub()
    messages = [frame(size) for size in (4, 7, 8, 20, 61, 62, 63, 64, 200, 2048)]
    transfers = [len(segment(message, 0, fd)) for message in messages]
    standard = Standard(fd)
    async with candump(CHANNEL) as lines:
        with can_link(hub, CHANNEL, 7, fd=fd) as link:
            await until(lambda: link.state == "up", PATIENCE_S)
            say(hub, None, *messages)
            seen = [await dumped(lines) for _ in range(sum(transfers))]
    first = seen[0][1][-1] & TID
    assert seen == [
        (can_id(SUBJECT, 7), data)
        for number, message in enumerate(messages, first)
        for data in segment(message, number, fd)
    ]
    for identifier, data in seen:
        standard.feed(identifier, data)
    assert [source for source, _ in standard.payloads] == [7] * len(messages)
    # the standard leaves the padding in
    for (_, payload), message in zip(standard.payloads, messages, strict=True):
        assert payload[: len(message)] == message
        assert not any(payload[len(message) :])
