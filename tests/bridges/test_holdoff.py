"""The wait for others on a shared trunk, where two bridges forward at once."""

import asyncio
from collections.abc import Callable

import pytest

from bridges.bridge import Bridge
from bridges.handover.gate import Gate
from bridges.policy import Policy
from bridges.side import Side
from bus.wire.batch import Batch, from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.support import RecordingPipe
from tests.helpers.peers import until

READING = pack(1, (7, 1), b"4.5")


class Shared:
    """Two bridges between one bus and one shared trunk that both forward."""

    def __init__(self, hold_needed: Callable[[], bool] = lambda: True) -> None:
        self.bridges = [Bridge("x", 0xA, pattern=(7,)) for _ in range(2)]
        self.wire: list[bytes] = []
        self.near, self.far = [], []
        for rank, bridge in enumerate(self.bridges):
            bus = bridge.side("bus", Policy(trunk=True))
            can = bridge.side("can", Policy(trunk=True, hold_s=0.03 * rank), hold_needed=hold_needed)
            bridge.stand_by(lambda _: True).resume()
            self.near.append((bus, RecordingPipe("bus")))
            self.far.append((can, Echo(self, rank)))
            bus.attach(self.near[-1][1])
            can.attach(self.far[-1][1])

    def say(self, *messages: bytes, first: int = 0) -> None:
        for bus, pipe in self.near if not first else reversed(self.near):
            bus.publish(from_payloads(messages), pipe)

    def balanced(self) -> bool:
        return all(port.stats.balance() == 0 for b in self.bridges for s in b.sides for port in s.ports)


class Echo(RecordingPipe):
    """An end of the shared trunk: the other bridge hears all messages that are sent here."""

    def __init__(self, shared: Shared, rank: int) -> None:
        super().__init__("can")
        self.shared, self.rank = shared, rank

    def send(self, batch) -> None:  # type: ignore[no-untyped-def]
        super().send(batch)
        self.shared.wire += self.messages
        self.messages.clear()
        side, pipe = self.shared.far[1 - self.rank]
        side.publish(batch, pipe)


async def test_two_that_forward_at_once_put_no_envelope_on_the_far_side_twice() -> None:
    shared = Shared()
    frames = [wrap(pack(1, (7, n)), Envelope(5, n)) for n in range(50)]
    for start in range(0, 50, 5):
        shared.say(*frames[start : start + 5], first=start % 2)
        assert shared.balanced()
        await asyncio.sleep(0)
    hold = shared.bridges[1].sides[1].hold
    assert hold is not None
    await until(lambda: not len(hold))
    assert sorted(m[4:12] for m in shared.wire) == sorted(m[4:12] for m in frames)
    assert shared.bridges[1].sides[1].ports[0].stats.dropped == {"heard": 25}
    assert shared.balanced()


async def test_what_nobody_else_sends_comes_after_its_wait_in_order() -> None:
    shared = Shared()
    frames = [wrap(pack(1, (7, n)), Envelope(5, n)) for n in range(20)]
    bus, pipe = shared.near[1]
    for message in frames:
        bus.publish(from_payloads([message]), pipe)
    stats = shared.bridges[1].sides[1].ports[0].stats
    assert stats.queued == 20
    assert shared.wire == []
    assert shared.balanced()
    await until(lambda: len(shared.wire) == 20)
    assert [m[4:12] for m in shared.wire] == [m[4:12] for m in frames]
    assert shared.balanced()


async def test_who_is_alone_does_not_wait_and_a_purge_is_counted() -> None:
    alone = True
    shared = Shared(lambda: not alone)
    bus, pipe = shared.near[1]
    bus.publish(from_payloads([wrap(READING, Envelope(5, 1))]), pipe)
    assert len(shared.wire) == 1
    alone = False
    bus.publish(from_payloads([wrap(READING, Envelope(5, 2))]), pipe)
    gate = shared.bridges[1].gate
    assert isinstance(gate, Gate)
    assert gate.queued() == 1
    gate.purge()
    assert gate.queued() == 0
    assert shared.bridges[1].sides[1].ports[0].stats.dropped == {"fenced": 1}
    assert shared.balanced()


class Failing(RecordingPipe):
    """A device that is found to be gone when a message is sent."""

    def __init__(self, side: Side) -> None:
        super().__init__("can")
        self._side = side

    def send(self, batch: Batch) -> None:
        super().send(batch)
        self._side.detach(self)


@pytest.mark.parametrize("by_reload", [True, False])
async def test_a_device_that_goes_while_held_messages_leave_loses_its_own_and_no_other(
    by_reload: bool,
) -> None:
    faults = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    bridge, program, other = Bridge("x", 0xA), RecordingPipe("bus"), RecordingPipe("other")
    bus = bridge.side("bus", Policy(trunk=True))
    can = bridge.side("can", Policy(trunk=True, hold_s=0.01))
    bus.attach(program)
    can.attach(Failing(can))
    can.attach(other)
    stats = [port.stats for port in can.ports]
    for number in range(3):
        bus.publish(from_payloads([wrap(READING, Envelope(5, number))]), program)
    if by_reload:
        bridge.revise_side(can, Policy(trunk=True))
    await until(lambda: len(other.messages) == 3)
    assert stats[0].sent == 1
    assert stats[0].dropped == {"closed": 2}
    assert [one.balance() for one in stats] == [0, 0]
    assert faults == []
