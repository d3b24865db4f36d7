"""The I2C mailbox without a bus: the worked trace byte for byte, sizes, timing, bounds; in virtual time."""

import pytest

from bridges.media.i2c.mailbox_controller import Access, Controller
from bridges.media.i2c.mailbox_segments import Timing
from bridges.media.i2c.mailbox_target import Target
from tests.bridges.media.i2c.mailbox_wire import Wire, exchange
from tests.bridges.support import MESSAGE, SIZES, frame

TRACE = [  # section 8 of the wire format: register, bytes; [..] is a read
    "20 [00 00]",
    "1e 00 01",
    "20 [01 00]",
    "00 e1 08 f0 11 a1 b2 c3 d4 00 00 00 07 02 02 00 05 11 22 33 44 55 66 77 88 68 65 6c 6c 6f 0d 1e a1",
    "20 [11 00]",
    "1b 4b 7a 96 03 41",
    "20 [01 00]",
]


def test_worked_example_byte_for_byte() -> None:
    wire = Wire()
    wire.backlog = [MESSAGE]
    wire.run(lambda: wire.outcomes == ["sent"])
    assert wire.trace == TRACE
    assert wire.to_target == [MESSAGE]
    assert wire.controller.state == "up"


def test_worked_example_from_the_target_s_side() -> None:
    target = Target()
    found = []
    for line in TRACE:
        register, _, rest = line.partition(" ")
        if rest.startswith("["):
            assert target.memory[0x20:0x22].hex(" ") == rest[1:-1]
        else:
            found += target.written(0.0, int(register, 16), bytes.fromhex(rest))
    assert found == [MESSAGE]


@pytest.mark.parametrize("size", [*SIZES, 22, 26, 27, 52, 56, 86])
def test_sizes_both_ways(size: int) -> None:
    wire = Wire()
    wire.backlog = [frame(size), frame(size)]
    assert wire.target.send(frame(size))
    assert wire.target.send(frame(size))
    wire.run(lambda: len(wire.outcomes) == 2 and len(wire.to_controller) == 2)
    assert wire.to_target == wire.to_controller == [frame(size)] * 2
    assert wire.target.sent == 2


def test_a_restarted_controller_takes_a_new_epoch() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.state == "up")
    wire.controller = Controller()
    wire.backlog = [MESSAGE]
    wire.run(lambda: wire.outcomes == ["sent"])
    assert wire.target.epoch == 2
    assert wire.to_target == [MESSAGE]


def test_polling_is_quick_while_there_is_traffic_and_backs_off_after_it() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    wire.pass_time(1.0)
    wire.trace.clear()
    wire.pass_time(10.0)
    assert 190 <= len(wire.trace) <= 201
    wire.target.send(frame(2048))
    started_s = wire.now
    wire.run(lambda: bool(wire.to_controller))
    assert wire.now - started_s < 0.05 + 69 * 3 * 0.0005 + 0.01


def test_an_access_takes_no_more_than_an_smbus_block() -> None:
    sizes = []

    def note(wanted: Access, carried: bytes) -> bytes:
        sizes.append(len(carried))
        return carried

    wire = Wire(note)
    exchange(wire, [frame(3072)], [frame(3072)])
    assert max(sizes) == 32


def test_the_epoch_comes_round() -> None:
    wire = Wire()
    for number in range(1, 33):
        wire.run(lambda number=number: wire.controller.links == number)  # type: ignore[misc]
        wire.target.boot()
    assert wire.controller.state in ("up", "linking")


def test_a_memory_elsewhere_is_written_data_first_and_ctl_last() -> None:
    target = Target()
    assert target.changes() == [(0x1E, b"\0\0"), (0x20, b"\0\0")]
    target.memory[0x1E:0x20] = b"\x00\x01"
    target.send(frame(4))
    target.poll(0.0)
    changes = target.changes()
    assert [register for register, _ in changes] == [0x21, 0x20]
    assert changes[0][1] == bytes((8,)) + target.memory[0x22:0x2A]
    assert changes[1][1] == b"\xe1"
    target.poll(0.1)
    assert target.changes() == []


def test_the_target_s_queue_is_bounded_and_each_drop_counted() -> None:
    target = Target(queue_bytes=100)
    assert [target.send(m) for m in (b"", bytes(3085), bytes(60), bytes(60))] == [False, False, True, False]
    assert target.dropped == {"empty": 1, "oversize": 1, "queue full": 1}
    assert target.offered == target.sent + sum(target.dropped.values()) + target.queued


def test_a_small_target_skips_what_is_too_long_and_stays_in_step() -> None:
    wire = Wire()
    wire.target = Target(message_bytes=256)
    wire.backlog = [frame(300), frame(200)]
    wire.run(lambda: len(wire.outcomes) == 2)
    assert wire.to_target == [frame(200)]
    assert wire.target.rejected == {"oversize": 1}


@pytest.mark.parametrize("message", [b"", b"abc", bytes(3085)])
def test_what_can_never_be_sent_is_refused(message: bytes) -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    with pytest.raises(ValueError, match="4 to 3084"):
        wire.controller.send(wire.now, message)
    wire.controller.send(wire.now, MESSAGE)
    with pytest.raises(ValueError, match="one transfer"):
        wire.controller.send(wire.now, MESSAGE)


def test_timing_is_a_setting() -> None:
    controller = Controller(Timing(stall_s=0.1))
    assert controller.next(0.0) is not None
    controller.failed(0.1)
    assert controller.state == "absent"
