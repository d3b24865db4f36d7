"""The instructions of docs/microcontroller.md work."""

import asyncio
import os

import pytest

from bus.embedded.load import Board, load, open_port
from bus.hub import Hub
from bus.wire.frame import pack, unpack
from bus.wire.pattern import token
from tests.bridges.support import recorder, say
from tests.bus.embedded.microbit import MISSING, Microbit
from tests.bus.embedded.support import blocks
from tests.helpers.links import uart_link
from tests.helpers.peers import until
from topologies.checks.checker import check
from topologies.loading.loader import loads


@pytest.mark.parametrize("code", blocks("python"))
def test_the_programs_are_python(code: str) -> None:
    compile(code, "page", "exec")


def test_the_topology_is_one() -> None:
    (text,) = blocks("yaml")
    assert check(loads(text)) == []


@pytest.mark.skipif(bool(MISSING), reason=f"needs the Debian packages {MISSING}: see `make test`")
async def test_the_first_program_runs_on_the_board() -> None:
    microbit = Microbit()
    try:
        descriptor = open_port(microbit.path)
        board = Board(descriptor, timeout_s=40)
        told: list[str] = []
        await asyncio.to_thread(load, board, ["uart"], blocks("python")[0], told.append)
        os.close(descriptor)
        assert len(told) == 2
        hub = Hub()
        heard = recorder(hub)
        link = uart_link(microbit.path)
        link.open(hub, asyncio.get_running_loop())
        try:
            await until(lambda: len(heard.messages) >= 2)
            say(hub, None, pack(1, (token("greenhouse"), token("show")), b"7"))
            before = len(heard.messages)
            await until(lambda: len(heard.messages) >= before + 2)
        finally:
            link.close()
        first = unpack(heard.messages[0])
        assert first.tokens == (token("greenhouse"), token("uptime"))
        assert first.data.isdigit()
        assert link.stats.rejected == {}
    finally:
        microbit.close()
