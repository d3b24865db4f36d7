"""The node in C on emulated cores, which the node in Python and a bridge talk to."""

import json
from pathlib import Path

import pytest

from bus.embedded import tokens
from bus.wire.frame import PUB
from bus.wire.pattern import token
from tests.bus.embedded.bridged import bridged
from tests.bus.embedded.cores import CORES, Line, board, missing, talk
from tests.bus.embedded.vectors_header import header

FRAMES, RESETS = 40, 20
BIG = "68040, big-endian"
VECTORS = json.loads(Path(tokens.__file__).with_name("vectors.json").read_text())


@pytest.mark.parametrize("name", [name for name in CORES if name != BIG])
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
def test_a_big_endian_core_says_and_hears_the_vectors() -> None:
    core = CORES[BIG]
    if missing(core):
        pytest.skip(f"needs {missing(core)}: see `make test`")
    vectors = [vector for vector in VECTORS if "uart" in vector]
    with board(core, "vectors.c", {"vectors.h": header(vectors)}) as running:
        line = Line(running.path)
        line.write(b"go")
        said = b""
        while not said.endswith(b"end\n"):
            said += line.read(100) or b"silence, then end\n"
        line.close()
    assert said.decode().split("\n")[:-2] == ["right"] * len(vectors)


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
