"""An I2C link, or one target's pipe, closed and opened again."""

from asyncio import get_running_loop
from threading import Event

from bridges.media.i2c.memory import MemoryAdapter
from bus.hub import Hub
from tests.bridges.media.i2c.i2c_support import FaultyAdapter, balanced, check, opened
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.peers import until


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
        assert link.targets[0x42].state == "linking"  # its thread waits until the previous one has ended
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
    """A gateway that loses its lease closes pipes with queued messages, and may forward again later."""
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
