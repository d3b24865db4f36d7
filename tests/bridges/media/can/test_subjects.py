"""Patterns with Cyphal subjects of their own: the wire, old and new gateways, and nodes of the standard."""

from asyncio import get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import can
import pytest
from pycyphal2 import Instant, Priority
from pycyphal2.can import CANTransport
from pycyphal2.can._wire import TransferKind, serialize_transfer
from pycyphal2.can.pythoncan import PythonCANInterface

from bridges.media.can.codec import NODE_MAX, can_id, padding, segment
from bridges.media.can.link import CanLink, subject_filters
from bridges.media.can.medium import Can
from bridges.media.can.subjects import Subjects, compact
from bridges.media.subject import HEARTBEAT, PRIORITIES, SUBJECT_MAX, Subject, bounds
from bus.hub import Hub
from bus.keys import Keyring
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import CACHE, PUB, pack
from bus.wire.pattern import Pattern
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.links import can_link
from tests.helpers.peers import until
from tests.helpers.ports import free_channel

RPM, TEMP, STATE = Pattern("engine", "rpm"), Pattern("engine", "temp"), Pattern("engine", "state")
SUBJECTS = {
    "engine/rpm": Subject(subject=4100),
    "engine/temp": Subject(subject=4101, priority="high"),
    "engine/state": Subject(subject=4102, data_bytes=9),
}
ENVELOPE = Envelope(0xA1B2C3D4, 7)
READING = pack(PUB, RPM, bytes.fromhex("00000bb8"))
SIZES = (0, 1, 4, 7, 8, 9, 11, 12, 20, 63, 64, 100, 255, 1024, 2047, 2048)


@contextmanager
def on(channel: str, hub: Hub, node: int, **options: Any) -> Iterator[CanLink]:
    options = {"queue_bytes": 1 << 20, "age_ms": 60_000} | options
    made = can_link("virtual", channel, node, **options)
    made.open(hub, get_running_loop())
    try:
        yield made
    finally:
        made.close()
        assert made.stats.balance() == 0


def on_wire(tap: "can.BusABC") -> list[tuple[int, bytes]]:
    """Return what was sent but for heartbeats."""
    found = []
    while (message := tap.recv(0)) is not None:
        found.append((message.arbitration_id, bytes(message.data)))
    return [one for one in found if not is_heartbeat(one[0])]


def is_heartbeat(identifier: int) -> bool:
    return identifier >> 8 & SUBJECT_MAX == HEARTBEAT


def beats(tap: "can.BusABC", node: int) -> Callable[[], int]:
    """Return what counts the heartbeats of a node."""
    seen = list[int]()

    def count() -> int:
        while (message := tap.recv(0)) is not None:
            seen.append(message.arbitration_id)
        return sum(is_heartbeat(one) and one & NODE_MAX == node for one in seen)

    return count


async def test_the_bytes_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, hub = free_channel(), Hub()
    with on(channel, hub, 5, subjects=SUBJECTS) as link, can.Bus(channel, "virtual") as tap:
        await until(lambda: link.state == "up")
        for subject in (4100, 0x1234):
            monkeypatch.setitem(link.node.transfers._of_subjects, subject, 3)  # noqa: SLF001
        say(hub, None, READING)
        say(hub, None, wrap(READING, ENVELOPE))
        await until(lambda: link.stats.sent == 2)
        plain, *enveloped = on_wire(tap)
    assert (plain[0], plain[1].hex()) == (0x10700405, "00000bb8e3")
    assert {identifier for identifier, _ in enveloped} == {0x10723405}
    data = [data.hex() for _, data in enveloped]
    assert data == ["e308f004a1b2c3a3", "d400000007000003", "0bb8c15763"]


@pytest.mark.parametrize("fd", [False, True])
@pytest.mark.parametrize("enveloped", [False, True])
async def test_every_size_crosses_and_envelopes_stay_exact(fd: bool, enveloped: bool) -> None:
    channel, near, far = free_channel(), Hub(), Hub()
    mine, theirs = recorder(near), recorder(far)
    with (
        on(channel, near, 1, subjects=SUBJECTS, fd=fd) as a,
        on(channel, far, 2, subjects=SUBJECTS, fd=fd) as b,
    ):
        await until(lambda: a.state == b.state == "up")
        for number, size in enumerate(SIZES):
            bare = pack(PUB, RPM, bytes((number + 1,)) * size)
            say(near, mine, wrap(bare, Envelope(9, number)) if enveloped else bare)
            await until(lambda number=number: len(theirs.messages) == number + 1)  # type: ignore[misc]
        sent = [pack(PUB, RPM, bytes((n + 1,)) * size) for n, size in enumerate(SIZES)]
        if enveloped:
            assert theirs.messages == [wrap(one, Envelope(9, n)) for n, one in enumerate(sent)]
        else:
            zeros = [padding(size) if fd else 0 for size in SIZES]
            padded = [
                pack(PUB, RPM, (one[12:] + bytes(n))[:2048]) for one, n in zip(sent, zeros, strict=True)
            ]
            assert theirs.messages == padded
        assert mine.messages == []
        assert "conflict" not in a.stats.rejected


async def test_the_length_is_kept_on_fd_where_it_is_known_and_a_longer_frame_stays_here() -> None:
    channel, near, far = free_channel(), Hub(), Hub()
    theirs = recorder(far)
    with (
        on(channel, near, 1, subjects=SUBJECTS, fd=True) as a,
        on(channel, far, 2, subjects=SUBJECTS, fd=True) as b,
    ):
        await until(lambda: a.state == b.state == "up")
        say(near, None, pack(PUB, STATE, b"123456789"), pack(PUB, STATE, b"1234567890"))
        await until(lambda: theirs.messages == [pack(PUB, STATE, b"123456789")])
        assert a.stats.dropped == {"oversize": 1}


async def test_each_subject_has_its_priority_and_counts_its_transfers() -> None:
    channel, hub = free_channel(), Hub()
    with on(channel, hub, 5, subjects=SUBJECTS) as link, can.Bus(channel, "virtual") as tap:
        await until(lambda: link.state == "up")
        for _ in range(2):
            say(hub, None, READING, pack(PUB, TEMP, b"\1"))
        await until(lambda: link.stats.sent == 4)
        seen = on_wire(tap)
    assert [one for one, _ in seen] == 2 * [can_id(4100, 5, 4), can_id(4101, 5, 3)]
    assert [(seen[n + 2][1][-1] - seen[n][1][-1]) % 32 for n in (0, 1)] == [1, 1]


async def test_other_types_longer_patterns_and_all_else_go_as_before() -> None:
    channel, near, far = free_channel(), Hub(), Hub()
    theirs = recorder(far)
    sent = [
        pack(CACHE, RPM, b"x"), pack(PUB, (*RPM, 1), b"y"), pack(PUB, RPM[:1], b"z"), MESSAGE, frame(200)
    ]  # fmt: skip
    with (
        can.Bus(channel, "virtual") as tap,
        on(channel, far, 2) as old,
        on(channel, near, 1, subjects=SUBJECTS) as new,
    ):
        await until(lambda: new.state == old.state == "up")
        beaten = beats(tap, 1)
        say(near, None, *sent, READING, wrap(READING, ENVELOPE))
        await until(lambda: old.stats.rejected == {"foreign": 1 + beaten(), "malformed": 1})
        assert theirs.messages == sent
        heard = recorder(near, "near")
        say(far, theirs, READING, MESSAGE)  # the old gateway says all of it as ever
        await until(lambda: heard.messages == [READING, MESSAGE])


async def test_a_doubled_transfer_counts_once_and_another_node_with_our_id_is_told() -> None:
    channel, hub = free_channel(), Hub()
    heard = recorder(hub)
    with on(channel, hub, 5, subjects=SUBJECTS) as link, can.Bus(channel, "virtual") as tap:
        await until(lambda: link.state == "up")
        for identifier, tid in ((can_id(4100, 9), 1), (can_id(4100, 9), 1), (can_id(4100, 9), 2)):
            tap.send(can.Message(arbitration_id=identifier, data=b"same" + bytes((0xE0 | tid,))))
        tap.send(can.Message(arbitration_id=can_id(4100, 5), data=b"ours\xe0"))
        await until(lambda: link.stats.rejected == {"duplicate": 1, "conflict": 1})
        assert heard.messages == 2 * [pack(PUB, RPM, b"same")]
        tap.send(
            can.Message(arbitration_id=can_id(0x1234, 9), data=compact(MESSAGE, 4999, b"", 0)[:7] + b"\xe3")
        )
        parts = segment(compact(MESSAGE, 4999, b"no pattern", 0), 4)
        for data in parts:
            tap.send(can.Message(arbitration_id=can_id(0x1234, 9), data=data))
        await until(lambda: link.stats.rejected.get("foreign") == 1)
        assert link.stats.rejected["malformed"] == 1


async def test_a_signed_trunk_takes_no_plain_message_and_seals_the_short_ones() -> None:
    keys, channel, near, far = Keyring((b"k" * 32,)), free_channel(), Hub(), Hub()
    theirs = recorder(far)
    with (
        can.Bus(channel, "virtual") as tap,
        on(channel, far, 2, subjects=SUBJECTS, keys=keys, fd=True) as b,
        on(channel, near, 1, subjects=SUBJECTS, keys=keys, fd=True) as a,
    ):
        await until(lambda: a.state == b.state == "up")
        beaten = beats(tap, 1)
        tap.send(can.Message(arbitration_id=can_id(4100, 9), data=b"same\xe1"))
        say(near, None, wrap(READING, ENVELOPE), READING)
        await until(lambda: len(theirs.messages) == 2)
        assert theirs.messages == [wrap(READING, ENVELOPE), READING]
        await until(lambda: b.stats.rejected == {"foreign": 1 + beaten()})


@pytest.mark.parametrize("fd", [False, True])
@pytest.mark.parametrize("size", [0, 4, 7, 8, 63, 64, 300])
def test_the_frames_are_those_of_the_standards_own_encoder(fd: bool, size: int) -> None:
    data = bytes(range(256))[:size] * 1 if size <= 256 else bytes(size)
    for number, word in enumerate(PRIORITIES):
        identifier, frames = serialize_transfer(
            kind=TransferKind.MESSAGE_13, priority=number, port_id=4100, source_id=5, destination_id=None,
            payload=data, transfer_id=3, fd=fd,
        )  # fmt: skip
        assert identifier == can_id(4100, 5, PRIORITIES.index(word))
        assert [bytes(one) for one in frames] == segment(data, 3, fd)


async def test_a_node_of_the_standard_is_a_peer() -> None:
    channel, hub, arrived = free_channel(), Hub(), list[Any]()
    heard = recorder(hub)
    with on(channel, hub, 5, subjects=SUBJECTS) as link:
        transport = CANTransport.new(PythonCANInterface(can.ThreadSafeBus(channel, "virtual"), fd=False))
        try:
            await until(lambda: link.state == "up")
            transport.subject_listen(4101, arrived.append)
            write = transport.subject_advertise(4100)
            say(hub, None, pack(PUB, TEMP, b"21.5"), pack(PUB, TEMP, b"longer than a frame"))
            await until(lambda: len(arrived) == 2)
            await write(Instant(ns=Instant.now().ns + 10**10), Priority.FAST, bytes(24) + b"\0\0\x0b\xb8")
            await until(lambda: heard.messages[-1:] == [READING])
        finally:
            transport.close()
    assert [(one.remote_id, one.priority, one.message[24:]) for one in arrived] == [
        (5, Priority.HIGH, b"21.5"), (5, Priority.HIGH, b"longer than a frame"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("subjects", "why"),
    [
        ({"a": 0x1234}, "subject of TMQ"),
        ({"a": 7509}, "a: 7509 is that of heartbeats"),
        ({"a": 1, "b": 1}, "a and b both have 1"),
        ({"/": 1}, "no whole pattern"),
        ({"a/1": 1, "a/0x1": 2}, "one pattern"),
        ({str(number): number for number in range(1025)}, "1024 at most"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(subjects: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Can(channel="c", subjects={text: Subject(subject=number) for text, number in subjects.items()})


@pytest.mark.parametrize("bad", [-1, 8192, "4100", "8000-9000", "20-10", "a-b", "-5"])
def test_a_subject_is_a_number_or_a_range(bad: int | str) -> None:
    with pytest.raises(ValueError, match=r"range|subject"):
        Subject(subject=bad)
    assert bounds("4100-4199") == (4100, 4199)


@pytest.mark.parametrize("text", ["4100", "a-4199", "4100-b", "-"])
def test_what_is_no_range_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=f'^"{text}" is no subject: write a number, or a range'):
        bounds(text)


def test_a_subject_is_shown_with_what_is_not_usual_of_it() -> None:
    assert Subject(subject=4100).words == "subject 4100"
    assert Subject(subject=4100, priority="high", data_bytes=8).words == "subject 4100 high, 8 bytes"


def test_a_message_with_more_data_than_a_frame_has_is_none() -> None:
    mapped = Subjects({("engine", "rpm"): Subject(subject=4100)}).of_number[4100]
    assert mapped.frame(bytes(2100)) == pack(PUB, RPM, bytes(2048))
    assert mapped.frame(bytes(2049) + b"\1") is None


def test_the_kernel_filters_by_subject_and_by_none_where_it_takes_no_more() -> None:
    filters = subject_filters((0x1234, 4100))
    assert [identifier >> 8 & 0x1FFF for identifier, _ in filters] == [0x1234, 4100]
    ((identifier, mask),) = subject_filters(range(600))
    for subject in (0, 8191):
        assert not (can_id(subject, 3) | 1 << 31) & mask ^ identifier


def test_a_frame_takes_the_bus_time_of_its_data() -> None:
    bus = Can(channel="c", bitrate=500_000, subjects=SUBJECTS)
    names, size = ("engine", "rpm"), len(READING)
    assert bus.seconds_of(names, size, False) == (80 + 50) / 500_000
    assert (bus.seconds_of(names, size, True) or 0) < (bus.seconds(size, True) or 0) * 0.7
    assert bus.seconds_of(("engine",), size, False) == bus.seconds(size, False)
