"""The node on a BBC micro:bit with MicroPython 1.9.2 and 9.3 KB of free heap, emulated by QEMU."""

import asyncio
import os
import random
import struct
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from bridges.media.uart.codec import encode
from bus.client.socket import Bus
from bus.embedded.load import Board, BoardError, install, load, open_port
from bus.wire.frame import PUB, pack
from bus.wire.pattern import token
from tests.bus.embedded.bridged import bridged
from tests.bus.embedded.microbit import MISSING, Microbit

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs the Debian packages {MISSING}: see `make test`"),
    pytest.mark.timeout(120),
]
FRAMES = 1000
HEAP_LEFT_BYTES = 3000
APP = """
from microbit import uart
node = Node(Uart(uart, 128))
UP, OWN = key("up"), key(("own", "start"))
def echo(tokens, data):
    node.publish(UP, data)
def publish(tokens, data):
    for i in range(1000):
        node.publish(OWN, struct.pack(">H", i) + data)
def state(tokens, data):
    gc.collect()
    link = node.link
    node.publish("state", struct.pack(">HHHH", gc.mem_free(), link.rejected, link.oversize, link.unsent))
node.subscribe("down", echo)
node.subscribe(("own", "start"), publish)
node.subscribe("ask", state)
"""


@pytest.fixture
def microbit() -> Iterator[Microbit]:
    board = Microbit()
    yield board
    board.close()


@contextmanager
def opened(path: str) -> Iterator[Board]:
    descriptor = open_port(path)
    try:
        yield Board(descriptor, timeout_s=40)
    finally:
        os.close(descriptor)


def data_of(number: int) -> bytes:
    """Return data that in time has every byte value, also Ctrl-C, Ctrl-D and zero."""
    return struct.pack(">H", number) + bytes((number + step) & 0xFF for step in range(number % 14))


async def test_a_thousand_frames_each_way_and_none_lost(microbit: Microbit) -> None:
    with opened(microbit.path) as board:
        await asyncio.to_thread(load, board, ["uart"], APP)
    async with bridged(microbit.path) as (bus, uart):
        for number in range(FRAMES):
            bus.send(("down",), data_of(number))
            frame = await bus.arecv(timeout=30)
            assert frame == (PUB, (token("up"),), data_of(number))
        bus.send(("own", "start"), b"\0\3x")
        own = [await bus.arecv(timeout=30) for _ in range(FRAMES)]
        bus.send(("ask",))
        state = await bus.arecv(timeout=30)
        assert uart.stats.rejected == {}
        assert uart.stats.received == 2 * FRAMES + 1
        assert uart.stats.sent == FRAMES + 2
    assert own == [
        (PUB, (token("own"), token("start")), struct.pack(">H", n) + b"\0\3x") for n in range(FRAMES)
    ]
    free, *lost = struct.unpack(">HHHH", state.data)
    assert lost == [0, 0, 0]
    assert free > HEAP_LEFT_BYTES


async def test_stored_on_the_board_it_starts_by_itself_and_an_error_in_it_ends_nothing(
    microbit: Microbit,
) -> None:
    app = APP.replace("128", "32") + "node.subscribe('fail', lambda tokens, data: 1 // 0)\n"
    with opened(microbit.path) as board:
        await asyncio.to_thread(install, board, ["uart"], app)
        await asyncio.to_thread(board.wait_for, b"soft reboot\r\n")
    async with bridged(microbit.path) as (bus, uart):
        await until_it_answers(bus)
        bus.send(("fail",))
        bus.send(("down",), b"after")
        assert await heard(bus, "up") == b"after"
        assert sum(uart.stats.rejected.values()) > 0  # the error's text
        bus.send(("down",), bytes(27))  # one byte too long; two of them fit in its receive buffer
        bus.send(("down",), b"s")
        assert await heard(bus, "up") == b"s"
        microbit.reset()
        await until_it_answers(bus)
    with opened(microbit.path) as board:
        entering = asyncio.create_task(asyncio.to_thread(board.enter))
        while not entering.done():  # QEMU checks only once a second whether its pty is open again
            microbit.reset()
            await asyncio.wait({entering}, timeout=3)
        await entering
        assert "main.py" in await asyncio.to_thread(board.run, "import os;print(os.listdir())")


async def heard(bus: Bus, name: str) -> bytes:
    """Return the data of the next frame of that name."""
    while True:
        frame = await bus.arecv(timeout=30)
        if frame.tokens == (token(name),):
            return frame.data


async def until_it_answers(bus: Bus) -> None:
    """Ask until the board answers: frames are lost while it starts, as with any device that is switched on.

    The answer to the last question shows that none of the others is in flight. Each is given twice the time
    of the one before: on a busy machine no answer may come as soon as the first one should.
    """
    for number in range(10):
        bus.send(("down",), bytes((number,)))
        with suppress(TimeoutError):
            while (await bus.arecv(timeout=0.25 * 2**number)).data != bytes((number,)):
                pass
            return
    raise AssertionError("the board answered no question")


def test_what_the_board_computes_is_what_the_gateway_computes(microbit: Microbit) -> None:
    chance = random.Random(3)
    with opened(microbit.path) as board:
        load(board, ["uart"])
        for name in ("", "fridge", "Kühlschrank €😀", 0, 0xFFFFFFFF):
            assert board.run(f"print(token({name!r}))").strip() == str(token(name))
        for code in (
            "bytes(4)",
            "bytes(range(40))",
            "bytes(range(1,256))",
            "b'x'*254+bytes(9)",
            "b'\\0y'*99",
        ):
            message = eval(code)
            board.run("m=r=0")
            for step in (f"m={code}", "r=bytes(stuff(m+crc(m)))"):
                board.heap_bytes()
                board.run(step)
            assert board.run("print(bytes(unstuff(bytearray(r[1:-1]))[:-4])==m)") == "True\r\n"
            coded = b"".join(literal_eval(board.run(f"print(r[{at}:{at + 40}])")) for at in range(0, 320, 40))
            assert coded == encode(message)
        board.run("m=r=0")
        for count, size in ((0, 0), (1, 5), (3, 30)):
            tokens = tuple(chance.randrange(1 << 32) for _ in range(count))
            board.run(f"m={pack(7, tokens, bytes(size))!r}")
            assert literal_eval(board.run("print(unpack(m))")) == (7, tokens, bytes(size))
            assert board.run(f"print(pack(7,{tokens},bytes({size}))==m)") == "True\r\n"


@pytest.mark.parametrize("parts", [["rs485"], ["i2c"]])
def test_other_parts_fit_too(microbit: Microbit, parts: list[str]) -> None:
    with opened(microbit.path) as board:
        load(board, parts)
        assert board.heap_bytes() > HEAP_LEFT_BYTES


def test_the_loader_begins_with_an_empty_heap_whatever_ran_before(microbit: Microbit) -> None:
    with opened(microbit.path) as board:
        board.enter()
        empty = board.heap_bytes()
        board.run("x=[]")
        with pytest.raises(BoardError, match="MemoryError"):
            board.run("while 1:x=[x]")
        with pytest.raises(BoardError, match="MemoryError"):
            board.run("import os;print(os.listdir())")
        board.enter()
        assert board.heap_bytes() == empty


def test_a_mistake_in_the_program_is_shown(microbit: Microbit) -> None:
    with opened(microbit.path) as board, pytest.raises(BoardError, match="NameError"):
        load(board, ["uart"], "node = Nodes()")
