"""A target's end of the I2C mailbox, byte by byte in its memory."""

import pytest

from bridges.media.i2c.mailbox_segments import ACK, EOT, SOT, TOG, seal
from bridges.media.i2c.mailbox_target import Target
from tests.bridges.support import frame

SHORT = frame(20)  # with its CRC in one segment


def linked(epoch: int = 1) -> Target:
    target = Target()
    assert target.written(0.0, 0x1E, bytes((0, epoch))) == []
    return target


def shown(target: Target) -> tuple[int, int, bytes]:
    """Return ctl, n and the data that the target shows."""
    size = target.memory[0x21]
    return target.memory[0x20], size, bytes(target.memory[0x22 : 0x22 + size])


def place(target: Target, flags: int, data: bytes, now: float = 0.0) -> list[bytes]:
    """Write a segment as the controller does: right-aligned before n and ctl."""
    return target.written(now, 0x1E - len(data), data + bytes((len(data), flags)))


def acknowledge(target: Target, now: float, ack: int) -> None:
    assert target.written(now, 0x1E, bytes((0, 1 | ack))) == []


def test_after_a_boot_it_waits_for_an_epoch() -> None:
    target = Target()
    assert (shown(target), target.pending, target.epoch) == ((0, 0, b""), True, 0)
    assert target.changes() == [(0x1E, b"\0\0"), (0x20, b"\0\0")]
    assert target.send(SHORT)
    target.poll(100.0)
    assert (shown(target), target.queued, target.dropped) == ((0, 0, b""), 1, {})


@pytest.mark.parametrize(
    ("size", "ctl", "epoch"), [(0, 1, 1), (0, 15, 15), (0, 16, 0), (0, 0, 0), (1, 1, 0), (0, 0x81, 0)]
)
def test_an_epoch_comes_without_a_segment_and_without_other_bits(size: int, ctl: int, epoch: int) -> None:
    target = Target()
    target.written(0.0, 0x1E, bytes((size, ctl)))
    assert (target.epoch, target.memory[0x20]) == (epoch, epoch)
    assert target.pending == (epoch == 0)


def test_the_same_epoch_again_changes_nothing_and_another_begins_anew() -> None:
    target = linked()
    assert place(target, SOT | TOG | 1, b"half") == []
    assert target.memory[0x20] == ACK | 1
    target.written(0.0, 0x1E, b"\0\1")
    assert target.memory[0x20] == ACK | 1
    target.written(0.0, 0x1E, b"\0\0")
    assert target.memory[0x20] == ACK | 1, "0 is no epoch to begin"
    target.written(0.0, 0x1E, b"\0\2")
    assert target.memory[0x20] == 2
    assert target.rejected == {"reset": 1}


def test_a_segment_is_taken_right_aligned_and_acknowledged() -> None:
    target = linked()
    assert place(target, SOT | EOT | TOG | 1, seal(SHORT)) == [SHORT]
    assert shown(target) == (ACK | 1, 0, b"")
    assert target.poll(0.0) == []
    assert place(target, SOT | EOT | 1, seal(frame(26))) == [frame(26)]
    assert shown(target) == (1, 0, b"")
    assert place(target, SOT | EOT | TOG | 2, seal(SHORT)) == []  # another epoch
    assert shown(target) == (1, 0, b"")


def test_a_message_is_shown_until_it_is_acknowledged() -> None:
    target = linked()
    assert not target.pending
    assert target.send(SHORT)
    assert target.queued == 1
    assert target.poll(0.0) == []
    assert shown(target) == (SOT | EOT | TOG | 1, 24, seal(SHORT))
    assert (target.pending, target.queued, target.sent) == (True, 1, 0)
    acknowledge(target, 0.0, ACK)
    assert shown(target) == (TOG | 1, 0, b"")
    assert (target.pending, target.queued, target.sent) == (False, 0, 1)


def test_a_longer_message_counts_once_it_is_through() -> None:
    target = linked()
    target.send(frame(40))
    target.send(SHORT)
    target.poll(0.0)
    counts = []
    for ack in (ACK, 0, ACK):
        counts.append((target.sent, target.queued))
        acknowledge(target, 0.0, ack)
    assert [*counts, (target.sent, target.queued)] == [(0, 2), (0, 2), (1, 1), (2, 0)]


def test_an_acknowledgement_of_nothing_asks_for_a_new_epoch_and_loses_nothing() -> None:
    target = linked()
    acknowledge(target, 0.0, ACK)
    assert (target.epoch, shown(target), target.pending) == (0, (0, 0, b""), True)
    target.send(SHORT)
    target.written(0.0, 0x1E, b"\0\1")
    assert target.epoch == 0, "the epoch before is over"
    target.written(0.0, 0x1E, b"\0\2")
    assert target.epoch == 2
    target.poll(0.0)
    assert target.memory[0x20] == SOT | EOT | TOG | 2
    assert target.dropped == {}


def test_a_transfer_is_given_up_2_s_after_its_last_progress() -> None:
    target = linked()
    target.send(frame(40))
    target.poll(1.0)
    acknowledge(target, 2.5, ACK)
    target.poll(4.25)
    assert target.dropped == {}
    target.poll(4.5)
    assert (target.dropped, target.epoch, shown(target)) == ({"stalled": 1}, 0, (0, 0, b""))
    target.poll(9.0)
    assert target.dropped == {"stalled": 1}


def test_a_transfer_that_waited_for_its_turn_has_2_s_from_then() -> None:
    target = linked()
    target.send(SHORT)
    target.poll(5.0)
    target.poll(6.75)
    assert target.dropped == {}
    target.poll(7.0)
    assert target.dropped == {"stalled": 1}


def test_a_boot_drops_all_with_its_reason() -> None:
    target = linked()
    for _ in range(3):
        target.send(SHORT)
    target.poll(0.0)
    place(target, SOT | TOG | 1, b"half")
    target.boot("closed")
    assert (target.dropped, target.queued, target.rejected) == ({"closed": 3}, 0, {"reset": 1})
    assert target.memory == bytes(64)
    target.boot()
    assert target.dropped == {"closed": 3}
    target.written(0.0, 0x1E, b"\0\1")
    assert target.epoch == 1, "after a boot any epoch is new"
    assert target.send(SHORT)
    target.boot()
    assert target.dropped == {"closed": 3, "reset": 1}


def test_the_queue_has_room_for_64_kib_and_is_free_when_a_transfer_begins() -> None:
    target = linked()
    for _ in range(32):
        assert target.send(frame(2048))
    assert not target.send(bytes(4))
    target.poll(0.0)
    assert target.send(frame(2048))
    assert not target.send(bytes(4))
    assert (target.offered, target.queued, target.dropped) == (35, 33, {"queue full": 2})
    target.boot()
    assert target.send(frame(2048))


def test_messages_of_4_to_3084_bytes_are_taken_and_the_others_counted() -> None:
    target = Target()
    sizes = (0, 1, 3, 4, 3084, 3085)
    assert [target.send(bytes(size)) for size in sizes] == [False, False, False, True, True, False]
    assert target.dropped == {"empty": 1, "short": 2, "oversize": 1}
    assert target.offered == 6


@pytest.mark.parametrize(
    ("register", "taken"), [(0x1E, b"ab"), (0x1F, b"a"), (0x20, b""), (0x30, b""), (0x00, b"abc")]
)
def test_the_controller_cannot_write_the_target_s_part(register: int, taken: bytes) -> None:
    target = Target()
    target.put(register, b"abc")
    expected = bytearray(64)
    expected[register : register + len(taken)] = taken
    assert target.memory == expected


def test_only_what_changes_is_written_to_a_memory_elsewhere() -> None:
    target = linked()
    target.changes()
    target.poll(0.0)
    assert target.changes() == []
    place(target, SOT | TOG | 1, b"half")
    assert target.changes() == [(0x20, bytes((ACK | 1,)))]
    target.send(SHORT)
    target.poll(0.0)
    assert target.changes() == [
        (0x21, b"\x18" + seal(SHORT)),
        (0x20, bytes((SOT | EOT | TOG | ACK | 1,))),
    ]


def test_it_uses_the_memory_that_it_is_given() -> None:
    memory = bytearray(b"x" * 64)
    target = Target(memory)
    assert target.memory is memory
    assert memory == bytes(64)
    assert len(Target().memory) == 64
