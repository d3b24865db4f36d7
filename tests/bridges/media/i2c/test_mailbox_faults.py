"""The I2C mailbox under faults: accesses not acknowledged, byte errors, reboots, stalls, noise."""

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridges.media.i2c.mailbox_controller import Access
from bridges.media.i2c.mailbox_target import Target
from tests.bridges.media.i2c.mailbox_wire import Wire, exchange
from tests.bridges.support import MESSAGE, frame

NO_ANSWER = 0.2
BYTE_ERRORS = 1e-4


def not_acknowledged(source: random.Random) -> Callable[[Access, bytes], bytes | None]:
    return lambda _, carried: None if source.random() < NO_ANSWER else carried


def noisy(source: random.Random, rate: float) -> Callable[[Access, bytes], bytes | None]:
    """Return data in which each byte is changed with probability `rate`."""

    def spoil(_: Access, carried: bytes) -> bytes | None:
        return bytes(source.randrange(256) if source.random() < rate else byte for byte in carried)

    return spoil


def messages(count: int, seed: int) -> list[bytes]:
    source = random.Random(seed)
    return [
        number.to_bytes(4) + source.randbytes(source.choice((0, 4, 18, 26, 100, 300)))
        for number in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_fifth_of_all_accesses_not_acknowledged(seed: int) -> None:
    wire = Wire(not_acknowledged(random.Random(seed)))
    there, back = messages(300, seed), messages(300, seed + 50)
    exchange(wire, there, back)
    assert wire.to_target == there
    assert wire.to_controller == back
    assert wire.outcomes == ["sent"] * 300
    assert wire.target.sent == 300
    assert wire.controller.nacks > 100


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rate", [BYTE_ERRORS, 1e-2])
def test_byte_errors_lose_messages_but_never_change_or_double_one(seed: int, rate: float) -> None:
    wire = Wire(noisy(random.Random(seed), rate))
    there, back = messages(300, seed), messages(300, seed + 50)
    exchange(wire, there, back)
    for sent, heard in ((there, wire.to_target), (back, wire.to_controller)):
        assert set(heard) <= set(sent)
        assert len(set(heard)) == len(heard)
        assert heard == sorted(heard)  # in order: they begin with their number
    if rate == BYTE_ERRORS:
        assert len(wire.to_target) + len(wire.to_controller) >= 562  # as in the run of the specification


def test_a_rebooted_target_is_linked_again_and_only_what_was_in_flight_is_lost() -> None:
    wire = Wire()
    there = [frame(200, seed) for seed in range(40)]
    wire.backlog = list(there)
    for _ in range(10):
        goal = len(wire.to_target) + 2
        wire.run(lambda goal=goal: len(wire.to_target) >= goal or not wire.backlog)  # type: ignore[misc]
        wire.run(lambda: wire.controller.outcome is None and not wire.controller.ready)
        wire.target.boot()
    wire.run(lambda: len(wire.outcomes) == 40)
    lost = wire.outcomes.count("reset")
    assert wire.controller.resets == 10
    assert 1 <= lost <= 10
    assert [one for one in there if one in wire.to_target] == wire.to_target
    assert len(wire.to_target) >= 40 - lost


def test_a_rebooted_target_s_half_message_is_dropped() -> None:
    wire = Wire()
    wire.target.send(frame(200))
    wire.run(lambda: wire.controller.inbox.ack == 1)
    wire.target.boot()
    assert wire.target.send(frame(60))
    wire.run(lambda: bool(wire.to_controller))
    assert wire.to_controller == [frame(60)]
    assert wire.controller.inbox.rejected == {"reset": 1}
    assert wire.target.dropped == {"reset": 1}


def test_a_target_that_takes_nothing_stalls_and_hears_nothing_stale() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    wire.serving = False
    wire.backlog = [frame(20, 1), frame(20, 2)]
    started_s = wire.now
    wire.run(lambda: wire.outcomes == ["stalled"])
    assert 2.0 <= wire.now - started_s < 2.1
    wire.trace.clear()
    wire.pass_time(10.0)
    assert wire.state == "stalled"
    assert sum(line.startswith("20 [") for line in wire.trace) <= 11  # polled once a second
    wire.serving = True
    wire.run(lambda: not wire.backlog and wire.controller.ready, seconds=1.2)
    assert wire.to_target == [frame(20, 2)]
    assert wire.state == "up"


def test_a_stalled_transfer_that_was_taken_does_not_hide_the_next_one() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    wire.fault = lambda wanted, carried: None if wanted.size else carried  # it can be written, not read
    wire.controller.send(wire.now, frame(20, 1))
    wire.run(lambda: wire.outcomes == ["stalled"])
    wire.fault = None
    for seed in (2, 3):
        wire.backlog = [frame(20, seed)]
        wire.run(lambda seed=seed: len(wire.outcomes) == seed)  # type: ignore[misc]
    assert wire.to_target == [frame(20, 1), frame(20, 2), frame(20, 3)]


def test_a_target_whose_segment_is_not_fetched_drops_it_and_asks_for_a_new_epoch() -> None:
    target = Target()
    assert target.written(0.0, 0x1E, b"\x00\x01") == []
    assert target.send(frame(20, 1))
    assert target.send(frame(20, 2))
    assert target.poll(0.0) == target.poll(1.9) == []
    assert target.memory[0x20] == 0xE1
    assert target.pending
    target.poll(2.0)
    assert (target.memory[0x20], target.memory[0x21]) == (0, 0)
    assert target.dropped == {"stalled": 1}
    target.poll(9.0)
    assert target.memory[0x20] == 0  # an epoch that it has abandoned does not restore the link
    target.written(10.0, 0x1E, b"\x00\x02")
    assert target.memory[0x20] == 0xE2
    assert target.memory[0x22:0x36] == frame(20, 2)
    assert target.offered == target.sent + sum(target.dropped.values()) + target.queued


def test_bits_out_of_step_are_noticed_at_once_and_cost_no_message() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    wire.pass_time(1.0)
    wire.target.inbox.ack ^= 1
    wire.backlog = [MESSAGE]
    started_s = wire.now
    wire.run(lambda: wire.outcomes == ["sent"])
    assert wire.to_target == [MESSAGE]
    assert wire.now - started_s < 0.1


def test_an_absent_target_is_polled_once_a_second_and_found_again() -> None:
    wire = Wire(lambda *_: None)
    wire.pass_time(2.5)
    assert wire.controller.state == "absent"
    before = wire.controller.nacks
    wire.pass_time(10.0)
    assert wire.controller.nacks - before <= 11
    wire.fault = None
    wire.run(lambda: wire.controller.state == "up", seconds=1.1)


@given(st.lists(st.tuples(st.integers(0, 70), st.binary(max_size=34)), max_size=60))
def test_noise_written_to_a_target_never_raises_and_it_serves_again(noise: list[tuple[int, bytes]]) -> None:
    wire = Wire()
    wire.target.send(frame(100, 9))
    for register, data in noise:
        wire.write(register, data)
        assert len(wire.target.memory) == 64
    wire.to_target.clear()
    wire.backlog = [MESSAGE]
    wire.run(lambda: wire.outcomes == ["sent"])
    assert wire.to_target == [MESSAGE]


@example([b"!\x01", b"!\x01", b""])  # a segment, and its acknowledgement
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=80))
def test_noise_read_by_the_controller_never_raises_and_it_serves_again(noise: list[bytes | None]) -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    for data in noise:
        wanted = wire.controller.next(wire.now)
        if wanted is None:
            wire.now = wire.controller.due_s
        elif data is None:
            wire.controller.failed(wire.now)
        else:
            found = wire.controller.done(wire.now, (data * 32)[: wanted.size] if data else data)
            assert found is None
    wire.pass_time(3.0)
    wire.target.send(frame(20))  # noise that passed for a segment can cost one message
    wire.run(lambda: not wire.target.queued)
    wire.backlog = [MESSAGE]
    wire.target.send(frame(100))
    wire.run(lambda: wire.outcomes[-1:] == ["sent"] and not wire.target.queued)
    assert wire.to_target[-1:] == [MESSAGE]
    assert wire.to_controller[-1:] == [frame(100)]


def once(change: Callable[[bytes], bytes], reads: bool, bytes_: int) -> Callable[[Access, bytes], bytes]:
    """A fault that changes the first access of a kind with so many bytes, and no others."""
    done: list[bool] = []

    def spoil(wanted: Access, carried: bytes) -> bytes:
        if done or bool(wanted.size) != reads or len(carried) != bytes_:
            return carried
        done.append(True)
        return change(carried)

    return spoil


@pytest.mark.parametrize("bit", range(8))
def test_one_flipped_bit_of_ctl_in_a_poll_loses_and_doubles_nothing(bit: int) -> None:
    wire = Wire()
    wire.target.send(frame(20, 1))
    wire.run(lambda: wire.to_controller == [frame(20, 1)])
    wire.pass_time(1.0)
    wire.fault = once(lambda carried: bytes((carried[0] ^ 1 << bit, carried[1])), reads=True, bytes_=2)
    wire.pass_time(1.0)
    wire.backlog = [frame(20, 2)]
    wire.target.send(frame(20, 3))
    wire.run(lambda: wire.outcomes == ["sent"] and not wire.target.queued)
    assert wire.to_target == [frame(20, 2)]
    assert wire.to_controller == [frame(20, 1), frame(20, 3)]
    assert wire.controller.resets == 0


def test_a_toggle_flipped_while_its_segment_is_still_up_does_not_double_the_message() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    wire.serving = False  # so that the segment stays exposed
    wire.target.send(frame(20))
    wire.target.poll(wire.now)
    wire.run(lambda: len(wire.to_controller) == 1)
    wire.fault = once(lambda carried: bytes((carried[0] ^ 0x20, carried[1])), reads=True, bytes_=2)
    wire.pass_time(0.3)
    assert wire.to_controller == [frame(20)]


def test_an_acknowledgement_that_was_garbled_is_said_again() -> None:
    wire = Wire()
    wire.run(lambda: wire.controller.ready)
    wire.fault = once(lambda carried: b"\0\0", reads=False, bytes_=2)
    wire.target.send(frame(20))
    wire.run(lambda: wire.target.sent == 1, seconds=1.0)
    assert wire.to_controller == [frame(20)]
    assert wire.controller.links == 1
