"""The I2C link on adapters in memory, in a thread as on hardware and on the loop."""

from asyncio import get_running_loop
from threading import Event
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.media.i2c.link import I2cLink
from bridges.media.i2c.medium import I2c
from bridges.media.i2c.memory import MemoryAdapter
from bus.errors import LinkError
from bus.hub import Hub
from tests.bridges.media.i2c.i2c_support import FaultyAdapter, balanced, check, opened
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say
from tests.helpers.links import i2c_link
from tests.helpers.peers import until


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
        await until(lambda: memory.heard[0x23] == [FINAL])  # no old message came before it


FINAL = frame(33, 99)


async def test_turns_are_fair() -> None:
    """Eight busy targets, which send and receive, all progress at the same rate."""
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


async def test_a_device_that_is_not_there_is_waited_for() -> None:
    pytest.importorskip("smbus2")
    link = i2c_link(250, [0x42], retry_min_s=0.001)
    link.open(Hub(), get_running_loop())
    await until(lambda: link.state == "waiting")
    assert "/dev/i2c-250" in link.fault
    link.close()


@pytest.mark.parametrize(
    ("targets", "options", "words"),
    [
        ([], {}, "1 to 112"),
        ([0x42, 0x42], {}, "listed twice"),
        ([0x03], {}, "8 to 119"),
        ([0x78], {}, "8 to 119"),
        ([0x42], {"poll_ms": 0}, "poll_ms"),
        ([0x42], {"queue_bytes": 100}, "3084"),
        ([0x42], {"alert": "gpio17"}, "gpiochip"),
    ],
)
def test_what_can_never_work_is_refused(targets: list[int], options: dict[str, Any], words: str) -> None:
    with pytest.raises((LinkError, ValueError), match=words):
        i2c_link(1, targets, **options)


def test_another_shed_policy_holds_for_the_targets_also_while_the_bus_is_away() -> None:
    link, other = (I2cLink(I2c(bus=97, targets=(8, 9), queue_bytes=size)) for size in (4000, 5000))
    assert link.revise(other)
    assert {target.shed.queue_bytes for target in link.targets.values()} == {5000}
