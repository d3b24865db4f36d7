"""The node in C on emulated cores, which the node in Python and a bridge talk to."""

import pytest

from bus.wire.frame import PUB
from bus.wire.pattern import token
from tests.bus.embedded.bridged import bridged
from tests.bus.embedded.cores import CORES, board, missing, talk

FRAMES, RESETS = 40, 20


@pytest.mark.parametrize("name", CORES)
@pytest.mark.timeout(120)
def test_the_frame_after_noise_a_cut_or_a_reset_comes_through(name: str) -> None:
    core = CORES[name]
    if missing(core):
        pytest.skip(f"needs {missing(core)}: see `make test`")
    counts = talk(core, FRAMES, RESETS)
    assert counts["lost"] == 0
    assert counts["resets"] == 2
    assert counts["noise"] > 5
    assert counts["cut"] > 5


@pytest.mark.timeout(120)
async def test_a_bridge_loses_none_either() -> None:
    core = CORES["Cortex-M0"]
    if missing(core):
        pytest.skip(f"needs {missing(core)}: see `make test`")
    with board(core) as running:
        async with bridged(running.path) as (bus, uart):
            for number in range(100):
                bus.send(("ping",), bytes((number,)) * (number % 50))
                frame = await bus.arecv(timeout=30)
                assert frame == (PUB, (token("pong"),), bytes((number,)) * (number % 50))
            assert (uart.stats.rejected, uart.stats.received) == ({}, 100)
