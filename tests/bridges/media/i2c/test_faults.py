"""Faults of an I2C bus: accesses that fail, targets that reset, a bus held low, an unplugged adapter."""

import errno
import os
import random
from dataclasses import replace

from bridges.media.i2c.memory import MemoryAdapter
from bridges.media.i2c.poll import Lane, Poller
from bridges.media.shedding import Shed, ShedQueue
from bus.hub import Hub
from bus.ledger import Stats
from tests.bridges.media.i2c.i2c_support import QUICK, FaultyAdapter, balanced, opened
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.peers import until


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
        await until(lambda: len(memory.heard[0x21]) == 100)  # those of the other target as well
        assert heard.messages == sent
        assert link.targets[0x20].failures > 10
        assert link.targets[0x20].state == "up"


async def test_a_target_s_reset_is_counted_and_it_goes_on(blocks: bool) -> None:
    hub, memory = Hub(), MemoryAdapter([0x42], blocks=blocks)
    heard = recorder(hub)
    with opened(memory, hub, timing=replace(QUICK, stall_s=60.0)) as link:  # it stalls as this process may
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
