"""The I2C link on adapters in memory, in a thread as on hardware and on the loop."""

import contextlib
import errno
import os
import random
from asyncio import get_running_loop
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.codecs.mailbox import Timing
from bridges.i2c import I2cLink
from bridges.i2c.memory import MemoryAdapter
from bridges.i2c.poll import Lane, Poller
from bridges.shedding import Shed, ShedQueue
from bus.errors import LinkError
from bus.hub import Hub, Stats
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say, until

QUICK = Timing(poll_s=0.001, idle_s=0.005, resend_s=0.02, stall_s=0.15, rest_s=0.03)


class FaultyAdapter(MemoryAdapter):
    """Memory, with a hook before each access that may raise."""

    before: Callable[[int], None] = staticmethod(lambda address: None)

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        self.before(i2c_addr)
        return super().read_i2c_block_data(i2c_addr, register, length)

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        self.before(i2c_addr)
        super().write_i2c_block_data(i2c_addr, register, data)


@contextlib.contextmanager
def opened(memory: MemoryAdapter, hub: Hub, **options: Any) -> Iterator[I2cLink]:
    """A link to all targets of `memory`, whose ledger balances at the end."""
    targets = options.pop("targets", tuple(memory.targets))
    settings: dict[str, Any] = {"timing": QUICK, "retry_min_s": 0.005, "retry_max_s": 0.02} | options
    link = I2cLink(1, targets, adapter=settings.pop("adapter", memory.open), **settings)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()
        balanced(link)
        assert link.stats.queued == 0


def balanced(link: I2cLink) -> None:
    for target in link.targets.values():
        assert target.stats.balance() == 0, target.name


def check(holds: bool) -> None:
    assert holds


@pytest.fixture(params=["thread", "loop"])
def blocks(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "thread")


@pytest.mark.parametrize("size", SIZES)
async def test_sizes_both_ways(size: int, blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter([0x42], blocks=blocks)
    heard = recorder(hub)
    with opened(memory, hub) as link:
        await until(lambda: link.targets[0x42].state == "up")
        say(hub, heard, frame(size), frame(size))
        memory.send(0x42, frame(size))
        await until(lambda: memory.heard[0x42] == [frame(size)] * 2 and heard.messages == [frame(size)])
        await until(lambda: link.stats.sent == 2)
        assert link.stats.received == 1
        assert link.stats.sent_bytes == 2 * size


async def test_order_is_kept_and_nothing_is_echoed(blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter([0x42], blocks=blocks)
    heard = recorder(hub)
    sent = [frame(20 + seed % 50, seed) for seed in range(100)]
    with opened(memory, hub) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, *sent)
        for message in sent:
            memory.send(0x42, message)
        await until(lambda: len(memory.heard[0x42]) == len(heard.messages) == 100)
        balanced(link)
    assert memory.heard[0x42] == heard.messages == sent


async def test_the_gateway_relays_between_targets() -> None:
    memory = MemoryAdapter([0x20, 0x21, 0x22], blocks=True)
    side = Bridge("all", origin=7).side("i2c")
    with opened(memory, side) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        memory.send(0x20, frame(40))
        await until(lambda: memory.heard[0x21] == memory.heard[0x22] == [frame(40)])
        assert memory.heard[0x20] == []


async def test_eight_targets_one_hung_one_absent_the_others_get_all(blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter(range(0x20, 0x28), blocks=blocks)
    heard = recorder(hub)
    memory.hung.add(0x23)
    memory.targets.pop(0x25)
    good = [address for address in range(0x20, 0x28) if address not in (0x23, 0x25)]
    sent = [frame(60, seed) for seed in range(30)]
    with opened(memory, hub, targets=range(0x20, 0x28), queue_bytes=3084) as link:
        await until(lambda: link.state == "up")
        for message in sent:
            say(hub, heard, message)
            balanced(link)
        await until(lambda: all(memory.heard[address] == sent for address in good))
        await until(lambda: link.targets[0x23].state == "stalled" and link.targets[0x25].state == "absent")
        await until(lambda: not link.stats.queued)
        balanced(link)
        assert link.targets[0x23].stats.dropped == {"stalled": 30}
        assert link.targets[0x25].stats.dropped == {"absent": 30}
        say(hub, heard, MESSAGE)
        await until(lambda: all(memory.heard[address][-1] == MESSAGE for address in good))
        memory.hung.clear()
        await until(lambda: link.targets[0x23].state == "up")
        say(hub, heard, FINAL)
        await until(lambda: memory.heard[0x23] == [FINAL])  # nothing stale came before it


FINAL = frame(33, 99)


async def test_turns_are_fair() -> None:
    """Each of eight targets with much to send and to take comes on at the pace of the others."""
    hub, memory = Hub(), FaultyAdapter(range(0x20, 0x28), blocks=True)
    heard = recorder(hub)
    spread: list[int] = []
    gate = Event()

    def note(*_: object) -> None:
        counts = [len(memory.heard[address]) for address in memory.targets]
        spread.append(max(counts) - min(counts))

    with opened(memory, hub) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        memory.on_message = note
        memory.before = lambda address: check(gate.wait(20))
        say(hub, heard, *[frame(200, seed) for seed in range(40)])
        gate.set()
        await until(lambda: all(len(memory.heard[address]) == 40 for address in memory.targets))
    assert max(spread) <= 2


async def test_queue_is_bounded_for_each_target_by_itself() -> None:
    hub, memory = Hub(), MemoryAdapter([0x20, 0x21], blocks=True)
    heard = recorder(hub)
    with opened(memory, hub, queue_bytes=3084) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, *[frame(1000, seed) for seed in range(5)], b"", b"abc", bytes(3085))
        for target in link.targets.values():
            assert target.stats.dropped == {"queue full": 2, "empty": 1, "short": 1, "oversize": 1}
            assert target.stats.queued <= 3
        balanced(link)
        await until(lambda: link.stats.sent == 6)


async def test_a_fifth_of_all_accesses_not_acknowledged() -> None:
    hub, memory = Hub(), FaultyAdapter([0x20, 0x21], blocks=True)
    heard = recorder(hub)
    source = random.Random(5)

    def sometimes(address: int) -> None:
        if source.random() < 0.2:
            raise OSError(errno.EREMOTEIO, os.strerror(errno.EREMOTEIO))

    memory.before = sometimes
    sent = [frame(30 + seed, seed) for seed in range(50)]
    with opened(memory, hub) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, *sent)
        for message in sent:
            memory.send(0x20, message)
        await until(lambda: len(heard.messages) == 50 and memory.heard[0x20] == sent)
        await until(lambda: len(memory.heard[0x21]) == 100)  # the other target's as well
        assert heard.messages == sent
        assert link.targets[0x20].failures > 10
        assert link.targets[0x20].state == "up"


async def test_a_target_s_reset_is_counted_and_it_goes_on(blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter([0x42], blocks=blocks)
    heard = recorder(hub)
    with opened(memory, hub) as link:
        target = link.targets[0x42]
        await until(lambda: target.state == "up")
        memory.hung.add(0x42)
        say(hub, heard, frame(200, 1), frame(200, 2))
        await until(lambda: memory.targets[0x42].memory[0x1F] & 0x80 != 0)
        memory.boot(0x42)
        memory.hung.clear()
        await until(lambda: target.resets == 1 and memory.heard[0x42] == [frame(200, 2)])
        assert target.stats.dropped == {"reset": 1}
        await until(lambda: target.stats.sent == 1)


async def test_adapter_pulled_out_and_back(blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter([0x20, 0x21], blocks=blocks)
    heard = recorder(hub)
    with opened(memory, hub) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        memory.plugged = False
        await until(lambda: link.state == "waiting")
        assert link.losses == 1
        assert "gone" in link.fault or "shutdown" in link.fault
        assert hub.pipes == (heard,)
        assert link.targets[0x20].state == "closed"
        memory.boot(0x20)
        memory.plugged = True
        await until(lambda: link.state == "up" and link.targets[0x21].state == "up")
        say(hub, heard, MESSAGE)
        await until(lambda: memory.heard[0x20] == memory.heard[0x21] == [MESSAGE])
        balanced(link)
    assert hub.pipes == (heard,)


async def test_stuck_bus_is_a_state_and_ends(blocks: bool) -> None:
    hub, memory = Hub(), FaultyAdapter([0x20, 0x21, 0x22], blocks=blocks)
    heard = recorder(hub)
    calls: list[int] = []

    def held_low(address: int) -> None:
        calls.append(address)
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    with opened(memory, hub) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        memory.before = held_low
        await until(lambda: link.stuck)
        assert {target.state for target in link.targets.values()} == {"stuck"}
        assert "timed out" in link.targets[0x20].fault
        calls.clear()
        say(hub, heard, frame(50, 1))
        await until(lambda: link.stats.dropped == {"stuck": 3})
        await until(lambda: len(set(calls)) == 2)  # probed one by one
        assert len(calls) < 10
        balanced(link)
        memory.before = lambda address: None
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        assert not link.stuck
        say(hub, heard, frame(50, 2))
        await until(lambda: all(memory.heard[address] == [frame(50, 2)] for address in memory.targets))
        assert link.losses == 0


async def test_one_target_with_errors_is_no_stuck_bus() -> None:
    hub, memory = Hub(), FaultyAdapter([0x20, 0x21], blocks=True)

    def one(address: int) -> None:
        if address == 0x20:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    memory.before = one
    with opened(memory, hub) as link:
        await until(lambda: link.targets[0x20].state == "absent" and link.targets[0x21].state == "up")
        assert not link.stuck


class EventLine:
    """An alert line that a test pulls: an eventfd tells of changes."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._level = False

    def set(self, level: bool) -> None:
        self._level = level
        os.eventfd_write(self._fd, 1)

    def fileno(self) -> int:
        return self._fd

    def is_asserted(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)
        return self._level

    def close(self) -> None:
        os.close(self._fd)


async def test_the_alert_line_replaces_idle_polling(blocks: bool) -> None:
    hub, memory = Hub(), FaultyAdapter([0x20, 0x21], blocks=blocks)
    heard = recorder(hub)
    polls: list[int] = []
    memory.before = polls.append
    lazy = Timing(poll_s=0.001, idle_s=0.005, rest_s=3600)
    with contextlib.closing(EventLine()) as line, opened(memory, hub, alert=line, timing=lazy) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        await until(lambda: is_idle(link))
        before = len(polls)
        memory.send(0x21, MESSAGE)
        line.set(True)
        await until(lambda: heard.messages == [MESSAGE])
        line.set(False)
        await until(lambda: is_idle(link))
        assert len(polls) > before
        say(hub, heard, frame(30))  # to send, no line is needed
        await until(lambda: memory.heard[0x21] == [frame(30)] and memory.heard[0x20] == [MESSAGE, frame(30)])


def is_idle(link: I2cLink) -> bool:
    """Whether all targets rest for long."""
    now = get_running_loop().time()
    lanes = [target._lane for target in link.targets.values()]  # noqa: SLF001
    return all(lane is not None and lane.controller.due_s > now + 60 for lane in lanes)


async def test_a_lost_alert_line_means_polling() -> None:
    hub, memory = Hub(), MemoryAdapter([0x20], blocks=True)
    heard = recorder(hub)

    class Broken(EventLine):
        def is_asserted(self) -> bool:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    with contextlib.closing(Broken()) as line, opened(memory, hub, alert=line):
        memory.send(0x20, MESSAGE)
        await until(lambda: heard.messages == [MESSAGE])


async def test_closing_twice_and_opening_again(blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter([0x42], blocks=blocks)
    heard = recorder(hub)
    with opened(memory, hub) as link:
        link.close()
        link.close()
        assert link.state == "closed"
        link.open(hub, get_running_loop())
        await until(lambda: link.targets[0x42].state == "up")
        say(hub, heard, *[frame(500, seed) for seed in range(20)])
        link.close()
        link.close()
        balanced(link)
        link.open(hub, get_running_loop())
        await until(lambda: link.targets[0x42].state == "up")
        memory.heard[0x42].clear()
        say(hub, heard, MESSAGE)
        await until(lambda: memory.heard[0x42] == [MESSAGE])
    assert hub.pipes == (heard,)


async def test_closing_does_not_wait_for_an_access_that_hangs() -> None:
    hub, memory = Hub(), FaultyAdapter([0x42], blocks=True)
    heard = recorder(hub)
    gate, inside = Event(), Event()

    def hang(address: int) -> None:
        inside.set()
        check(gate.wait(20))

    with opened(memory, hub) as link:
        await until(lambda: link.targets[0x42].state == "up")
        memory.before = hang
        say(hub, heard, MESSAGE)
        await until(inside.is_set)
        link.close()
        assert link.state == "closed"
        assert hub.pipes == (heard,)
        link.open(hub, get_running_loop())
        await until(lambda: link.state == "up")
        assert link.targets[0x42].state == "linking"  # its thread waits for the one before to let go
        gate.set()
        await until(lambda: link.targets[0x42].state == "up")
        assert link.stats.dropped == {"closed": 1}


async def test_one_target_s_pipe_closed_leaves_the_others() -> None:
    hub, memory = Hub(), MemoryAdapter([0x20, 0x21], blocks=True)
    heard = recorder(hub)
    with opened(memory, hub) as link:
        await until(lambda: link.state == "up")
        link.targets[0x20].close()
        link.targets[0x20].close()
        say(hub, heard, MESSAGE)
        await until(lambda: memory.heard[0x21] == [MESSAGE])
        assert memory.heard[0x20] == []
        assert link.targets[0x20].stats.offered == 0


async def test_a_target_whose_pipe_was_closed_joins_again(blocks: bool) -> None:
    """A gateway that may no longer forward closes what has something queued, and forwards another day."""
    hub, memory = Hub(), MemoryAdapter([0x20, 0x21], blocks=blocks)
    heard = recorder(hub)
    with opened(memory, hub) as link:
        target = link.targets[0x20]
        for round_ in range(2):
            await until(lambda: target.state == "up")
            say(hub, heard, frame(50, round_))
            await until(lambda: memory.heard[0x20][-1:] == [frame(50, round_)])  # noqa: B023
            target.close()
            assert target not in hub.pipes
            await until(lambda: target in hub.pipes)
        assert hub.pipes.count(target) == 1
        await until(lambda: target.state == "up")
        memory.send(0x20, frame(60))
        await until(lambda: frame(60) in heard.messages)
    assert hub.pipes == (heard,)


async def test_a_target_that_was_to_join_again_does_not_where_the_link_has_closed() -> None:
    hub, memory = Hub(), MemoryAdapter([0x20], blocks=False)
    with opened(memory, hub) as link:
        await until(lambda: link.targets[0x20].state == "up")
        link.targets[0x20].close()
        link.close()
        link.open(hub, get_running_loop())
        await until(lambda: link.targets[0x20].state == "up")
        assert len(hub.pipes) == 1


def test_a_stuck_bus_that_all_targets_left_is_no_busy_loop() -> None:
    now, memory = [0.0], FaultyAdapter([0x20, 0x21])
    memory.before = hang
    lanes = [Lane(address, QUICK, ShedQueue(Stats(), Shed())) for address in (0x20, 0x21)]
    poller = Poller("i2c", memory, lanes, lambda: now[0], lambda report: None)
    while not poller.stuck:
        now[0] = max(now[0] + 0.001, poller.round())
    for lane in lanes:
        lane.closed = True
    now[0] += 10.0
    assert poller.round() > now[0]


def hang(_: int) -> None:
    raise OSError(errno.ETIMEDOUT, "held low")


async def test_what_waited_for_a_closed_pipe_is_not_sent_after_all() -> None:
    hub, memory = Hub(), FaultyAdapter([0x20, 0x21], blocks=True)
    heard = recorder(hub)
    gate = Event()
    with opened(memory, hub) as link:
        await until(lambda: all(target.state == "up" for target in link.targets.values()))
        memory.before = lambda address: check(gate.wait(20))
        sent = [frame(100, seed) for seed in range(5)]
        say(hub, heard, *sent)
        link.targets[0x20].close()
        assert link.targets[0x20].stats.dropped == {"closed": 5}
        balanced(link)
        gate.set()
        await until(lambda: memory.heard[0x21] == sent)
        assert len(memory.heard[0x20]) <= 1  # what was in flight may arrive


async def test_an_adapter_given_is_not_closed_and_one_made_is() -> None:
    closed: list[str] = []

    class Told(MemoryAdapter):
        def close(self) -> None:
            closed.append("closed")

    memory = Told([0x42], blocks=True)
    with opened(memory, Hub(), adapter=memory) as link:
        await until(lambda: link.targets[0x42].state == "up")
    with opened(memory, Hub(), adapter=memory.open) as link:
        await until(lambda: link.targets[0x42].state == "up")
        assert closed == []
    await until(lambda: closed == ["closed"])


async def test_a_device_that_is_not_there_is_waited_for() -> None:
    pytest.importorskip("smbus2")
    link = I2cLink(250, [0x42], retry_min_s=0.001)
    link.open(Hub(), get_running_loop())
    await until(lambda: link.state == "waiting")
    assert "/dev/i2c-250" in link.fault
    link.close()


@pytest.mark.parametrize(
    ("targets", "options", "words"),
    [
        ([], {}, "one address"),
        ([0x42, 0x42], {}, "each once"),
        ([0x03], {}, "0x08 to 0x77"),
        ([0x78], {}, "0x08 to 0x77"),
        ([0x42], {"poll_ms": 0}, "poll_ms"),
        ([0x42], {"queue_bytes": 100}, "3084"),
        ([0x42], {"alert": "gpio17"}, "gpiochip"),
    ],
)
def test_what_can_never_work_is_refused(targets: list[int], options: dict[str, Any], words: str) -> None:
    with pytest.raises(LinkError, match=words):
        I2cLink(1, targets, **options)
