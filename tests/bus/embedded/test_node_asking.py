"""Both nodes ask a cache for last values and the time, over a bridge and a line of 115,200 baud."""

import asyncio
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.media.uart.codec import encode
from bridges.simulate.loop import run
from bridges.simulate.uart import SerialLine
from bus.wire.frame import PUB, pack
from bus.wire.pattern import token
from devices.cache import service
from devices.cache.device import CacheSpec
from devices.cache.service import Cache
from tests.bus.embedded import asking_boards
from tests.bus.embedded.asking_boards import CBoard, PythonBoard, strange
from tests.bus.embedded.cnode_support import build
from tests.helpers.peers import Ear

NOW_S = 1_764_273_600.25
BOARDS = [PythonBoard, CBoard]


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library of the node, built here, and its cffi."""
    return build(tmp_path_factory.mktemp("cnode"))


async def ask(kind: Any, c: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[float], list[int]]:
    """Return a board that has asked, by how many microseconds it missed the time, and its states."""
    loop, line, bridge = asyncio.get_running_loop(), SerialLine(), Bridge("b", origin=1)
    monkeypatch.setattr(service, "now_us", lambda: int((loop.time() + NOW_S) * 1e6))
    cache, link = Cache("c", CacheSpec(on="gw", cache=("p",))), line.link("gateway")
    plant = bridge.side("plant")
    cache.open(plant, loop)
    cache.start(loop)
    Ear(plant).say(pack(PUB, (token("fridge"), 5), b"4.5"), pack(PUB, (token("lamp"),), b"on"))
    link.open(bridge.side("board"), loop)
    board = kind(line.end("board"), c, monkeypatch)
    await asking_boards.run(board, 0.1)
    misses = []
    for number in range(20):
        board.ask_time()
        await asking_boards.run(board, 0.2 + 0.1 * number + 0.0037 * number)
        misses.append(board.now_us() - (loop.time() + NOW_S) * 1e6)
    board.ask_values("fridge")
    await asking_boards.run(board, loop.time() + 0.2)
    states = [board.state]
    await asking_boards.run(board, loop.time() + 2.5)
    states.append(board.state)
    link.end.line.ends[1].hear(loop, encode(strange()))
    await asking_boards.run(board, loop.time() + 0.1)
    states.append(board.state)
    board.ask_time()
    await asking_boards.run(board, loop.time() + 0.1)
    link.close()
    cache.close()
    return board, misses, [*states, board.state]


@pytest.mark.parametrize("kind", BOARDS)
def test_the_time_is_right_to_a_millisecond_and_silence_and_another_version_are_told(
    kind: Any, c: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, misses, states = run(ask(kind, c, monkeypatch))
    assert max(map(abs, misses)) < 1000, misses
    assert [value for value, _ in board.values] == [((token("fridge"), 5), b"4.5")]
    assert board.complete == (1, 0)
    assert states == [0, -6, -7, 0]
    print(f"the time is wrong by {min(misses):.0f} to {max(misses):.0f} us")
