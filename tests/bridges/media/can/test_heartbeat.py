"""The heartbeats of a node on a bus with subjects of patterns: the standard's bytes, and who hears them."""

import errno
from asyncio import get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import can
import pytest

from bridges.items import EXTENDED
from bridges.media.can import heartbeat
from bridges.media.can.codec import NODE_MAX, can_id, segment
from bridges.media.can.heartbeat import Heartbeat
from bridges.media.can.link import CanLink, subject_filters
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import unpack_frame
from bridges.media.subject import HEARTBEAT, PORTS, Subject
from bus.hub import Hub
from tests.bridges.media.can.can_kernel import Kernel, link_on
from tests.helpers.links import can_link
from tests.helpers.peers import until
from tests.helpers.ports import free_channel

SUBJECTS = {"engine/rpm": Subject(subject=4100)}
Clock = Callable[[float], None]


EVERY_S = 1000
"""The time between two heartbeats here, so that none is due before the clock is moved."""


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.can.transfers.EVERY_S", EVERY_S)


def test_the_standard_asks_for_one_each_second() -> None:
    assert heartbeat.EVERY_S == 1


@contextmanager
def on(channel: str, node: int = 5, **options: Any) -> Iterator[CanLink]:
    link = can_link("virtual", channel, node, **{"subjects": SUBJECTS} | options)
    link.open(Hub(), get_running_loop())
    try:
        yield link
    finally:
        link.close()


@contextmanager
def ear(channel: str) -> Iterator[list[can.Message]]:
    """Yield what is said on a channel, as it comes."""
    heard, loop = list[can.Message](), get_running_loop()
    with can.Bus(channel, "virtual") as bus:
        notifier = can.Notifier(bus, [heard.append], loop=loop)
        try:
            yield heard
        finally:
            notifier.stop()


def test_the_bytes_are_those_of_the_data_type() -> None:
    own = Heartbeat(42)
    assert own.identifier == 0x107D552A | EXTENDED
    for at_s, state, said in (
        (100.0, "error-active", "00000000 00 00 00"),
        (100.9, "unknown", "00000000 00 00 00"),
        (100.0 + 0x01020304, "error-warning", "04030201 01 00 00"),
        (100.0 + 0x01020305, "bus-off", "05030201 01 00 00"),
        (1e12, "error-passive", "ffffffff 01 00 00"),
    ):
        assert own.payload(at_s, state) == bytes.fromhex(said)  # type: ignore[arg-type]


@pytest.mark.parametrize("fd", [False, True])
async def test_one_leaves_by_the_clock_over_all_openings(clock: Clock, fd: bool) -> None:
    channel = free_channel()
    with ear(channel) as heard, on(channel, fd=fd) as link:
        for number in range(3):
            await until(lambda number=number: len(heard) == number + 1)  # type: ignore[misc]
            clock(EVERY_S)
        await until(lambda: len(heard) == 4)
        link.close()
        clock(1.5 * EVERY_S)
        link.open(Hub(), get_running_loop())
        await until(lambda: len(heard) == 5)
        clock(10 * EVERY_S)  # no more for a time that stood still
        await until(lambda: len(heard) == 6)
        assert link.stats.balance() == link.stats.offered == 0
    assert [int.from_bytes(one.data[:4], "little") // EVERY_S for one in heard] == [0, 1, 2, 3, 4, 14]
    tails = [one.data[7] for one in heard]
    assert [tail & 0xE0 for tail in tails] == [0xE0] * 6
    assert [(one - tails[0]) % 32 for one in tails] == [0, 1, 2, 3, 4, 5]
    assert {(one.arbitration_id, one.is_fd, one.dlc) for one in heard} == {(0x107D5505, fd, 8)}


@pytest.mark.parametrize("options", [{"subjects": {}}, {"listen_only": True}])
async def test_none_leaves_where_none_is_owed(clock: Clock, options: dict[str, Any]) -> None:
    channel = free_channel()
    with ear(channel) as heard, on(channel, **options) as link, on(channel, 6):
        await until(lambda: link.state == "up")
        for number in range(3):
            await until(lambda number=number: len(heard) == number + 1)  # type: ignore[misc]
            clock(EVERY_S)
    assert {one.arbitration_id & NODE_MAX for one in heard} == {6}


async def test_one_waits_at_most_while_the_bus_takes_none(kernel: Kernel, clock: Clock) -> None:
    kernel.txqueuelen = 0
    with link_on(Hub(), subjects=SUBJECTS, age_ms=3_600_000) as link:
        await until(lambda: link.state == "up")
        outbound: Any = link.pipe._outbound  # type: ignore[union-attr]  # noqa: SLF001
        for _ in range(10):
            clock(EVERY_S)
            await until(lambda: link.pipe._alarm._due_s > get_running_loop().time())  # type: ignore[union-attr]  # noqa: SLF001
        assert len(outbound._said) + len(outbound._pending) <= 2  # noqa: SLF001


async def test_none_is_due_on_a_bus_that_was_lost_when_one_was_sent(kernel: Kernel, clock: Clock) -> None:
    """Each opening that was lost so left a timer that went on for good, and used up transfer-ids."""
    with link_on(Hub(), subjects=SUBJECTS) as link:
        await until(lambda: len(kernel.wire) == 1)
        pipe: Any = link.pipe
        kernel.sockets[0].send_faults.append(errno.ENETDOWN)
        clock(EVERY_S)
        await until(lambda: link.pipe is not pipe)
        assert pipe._alarm._timer is None  # noqa: SLF001


async def test_the_kernel_confirms_each_as_its_filter_lets_it_by(kernel: Kernel, clock: Clock) -> None:
    with link_on(Hub(), subjects=SUBJECTS) as link:
        filters = link._filters()  # noqa: SLF001
        for number in range(12):  # more than the driver may have
            await until(lambda number=number: len(kernel.wire) == number + 1)  # type: ignore[misc]
            clock(EVERY_S)
        await until(lambda: not link.pipe._outbound.is_flying)  # type: ignore[union-attr]  # noqa: SLF001
    for raw in kernel.wire:
        frame = unpack_frame(raw)
        assert frame is not None
        assert any(not (frame[0] ^ value) & mask for value, mask in filters)


def test_the_filter_lets_only_our_own_by_and_the_kernel_takes_no_more_than_512() -> None:
    own = Heartbeat(5).filter
    frames = [can_id(HEARTBEAT, node) | EXTENDED for node in range(128)]
    assert [frame & NODE_MAX for frame in frames if not (frame ^ own[0]) & own[1]] == [5]
    assert len(subject_filters(range(511), (own,))) == 512
    ((value, mask),) = subject_filters(range(512), (own,))
    assert not (Heartbeat(5).identifier ^ value) & mask


async def test_another_node_with_our_id_is_told_and_others_are_no_strangers(clock: Clock) -> None:
    channel = free_channel()
    with on(channel) as link, can.Bus(channel, "virtual") as others:
        await until(lambda: link.state == "up")
        for number in range(40):
            for subject in (HEARTBEAT, PORTS):
                (data,) = segment(bytes(7), number)
                others.send(can.Message(arbitration_id=can_id(subject, 9), data=data))
        await until(lambda: link.stats.rejected == {"foreign": 80})
        clock(60.0)
        others.send(can.Message(arbitration_id=can_id(HEARTBEAT, 5), data=segment(bytes(7), 0)[0]))
        await until(lambda: link.stats.rejected == {"foreign": 80, "conflict": 1})
        assert link.condition == "unknown"
        for number in range(40):
            others.send(can.Message(arbitration_id=0x100 + number, is_extended_id=False))
        await until(lambda: link.stats.rejected["foreign"] == 120)
        clock(60.0)
        await until(lambda: "40 other ids" in link.condition)


async def test_our_own_that_come_back_are_an_echo(clock: Clock) -> None:
    channel = free_channel()
    with ear(channel) as heard, on(channel, options={"receive_own_messages": True}) as link:
        for number in range(3):
            await until(lambda number=number: link.stats.rejected == {"echo": number + 1})  # type: ignore[misc]
            clock(EVERY_S)
    assert heard


def test_a_bus_with_them_has_one_subject_more_and_gives_it_to_no_pattern() -> None:
    plain, mapped = Can(channel="c"), Can(channel="c", subjects=SUBJECTS)
    assert plain.subjects_of_tmq == plain.familiar_subjects == (0x1234,)
    assert mapped.subjects_of_tmq == (0x1234, 4100, HEARTBEAT)
    assert len(list(mapped.takes(5))) == 3
    with pytest.raises(ValueError, match="subject: 7509 is that of heartbeats"):
        Can(channel="c", subject=HEARTBEAT, subjects=SUBJECTS)
    assert Can(channel="c", subject=HEARTBEAT).subjects_of_tmq == (HEARTBEAT,)
