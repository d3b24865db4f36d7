import asyncio

import pytest

from bridges.simulate import SerialLine, SimulatedRs485, rs485_node, run
from bus.hub import Hub
from tests.bridges.support import SIZES, frame, recorder, say
from tests.helpers.peers import until


@pytest.mark.parametrize("echo", [False, True])
def test_a_master_and_two_nodes(echo: bool) -> None:
    async def scenario() -> None:
        loop, line = asyncio.get_running_loop(), SerialLine(shared=True, echo=echo)
        hubs = [Hub(), Hub(), Hub()]
        heard = [recorder(hub) for hub in hubs]
        link = SimulatedRs485(line.end("master"), nodes=(1, 2))
        link.open(hubs[0], loop)
        nodes = [rs485_node(line.end(), number, hubs[number], loop) for number in (1, 2)]
        await until(lambda: link.state == "up" and all(n.state == "up" for n in link.nodes.values()))
        for number, hub in enumerate(hubs):
            say(hub, heard[number], *(frame(size, number) for size in SIZES[5:]))
        count = 2 * len(SIZES[5:])
        await until(lambda: all(len(one.messages) == count for one in heard))
        assert not [event for event in line.log if event.what == "collision"]
        assert all(node.stats.balance() == node.stats.queued == 0 for node in nodes)
        nodes[1].close()
        await until(lambda: link.nodes[2].state == "silent")
        link.close()
        nodes[0].close()
        assert link.stats.balance() == 0

    run(scenario())
