"""The node as a TMQ client on a real MicroPython, in the heap that docs/microcontroller.md states."""

import asyncio
import os
import pty
import random
import re
import signal
import socket
import tty
from ast import literal_eval
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from bus.embedded.load import NODE, Board, load, node_codes
from bus.tmq import Client
from bus.tmq.broker import Broker
from bus.wire.frame import pack
from bus.wire.pattern import token
from tests.bus.embedded.support import MICROPYTHON, blocks
from tests.bus.embedded.tmq_board import named
from tests.bus.embedded.tmq_garbage import garbage
from tests.bus.tmq.broker.broker_house import HERE
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import say

pytestmark = pytest.mark.skipif(not MICROPYTHON, reason="needs `micropython` in the path")
HEAP = os.environ.get("HEAP", "36K")
SCRIPT = """
import gc, sys
pieces = open("node.txt")
piece = ''
while True:
 line = pieces.readline()
 if line > '\\n':
  piece += line
 else:
  exec(piece)
  piece = ''
  gc.collect()
  if not line:
   break
pieces.close()
ended, free = False, {b"10": 0, b"19": 0}
def echo(tokens, data):
 global ended
 ended = data == b"end"
 if data[:2] in free:
  gc.collect()
  free[data[:2]] = max(free[data[:2]], gc.mem_free())
 node.publish(7, data)
 node.publish(1, data)
node = TmqNode(Tmq([sys.argv[1]], "127.0.0.1", int(sys.argv[2])))
node.subscribe(9, echo)
node.subscribe(1, lambda tokens, data: None)
node.declare(7)
node.declare(1)
while not ended or node.link.calls:
 node.poll()
link = node.link
print((free, link.sent, link.dropped, link.full, link.rejected))
"""


UNCHANGED = """
import sys
from buscoupler_tmq import Tmq, TmqNode
node = TmqNode(Tmq(sys.argv[1:3], port=int(sys.argv[3]), refresh_s=1))
heard = []
node.subscribe("set", lambda tokens, data: heard.append((tokens, data)))
while not heard:
    node.poll()
print(*heard[0])
"""


TWO_ADDRESSES = """
import buscoupler_tmq, socket, sys
class Names:
    def __getattr__(self, name):
        return getattr(socket, name)
    def getaddrinfo(self, host, port, *more):
        hosts = ("127.0.0.2", "127.0.0.1") if host == "gw.example" else (host,)
        return [one for each in hosts for one in socket.getaddrinfo(each, port, *more)]
buscoupler_tmq.socket = Names()
node = buscoupler_tmq.TmqNode(buscoupler_tmq.Tmq(sys.argv[1:2], port=int(sys.argv[2]), refresh_s=1))
node.subscribe("set", print)
while node.link.broker is None:
    node.poll()
"""


NETWORK = """
STA_IF = 0
class WLAN:
    def __init__(self, interface): pass
    def active(self, on): pass
    def connect(self, *names): pass
    def isconnected(self): return True
    def ifconfig(self): return ("127.0.0.1",)
"""


@pytest.fixture
async def broker() -> Any:
    made = Broker("tcp://127.0.0.1:0")
    made.open(asyncio.get_running_loop())
    yield made
    made.close()


async def started(where: Path, *arguments: str) -> asyncio.subprocess.Process:
    pipe, out = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    path = {"MICROPYPATH": str(NODE.parent)}
    return await asyncio.create_subprocess_exec(
        str(MICROPYTHON), *arguments, cwd=where, env=os.environ | path, stdout=pipe, stderr=out
    )


async def test_long_messages_both_ways_amid_garbage_in_a_small_heap(tmp_path: Path, broker: Broker) -> None:
    (tmp_path / "node.txt").write_text("\n\n".join(node_codes(["tmq"])) + "\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    chance, port = random.Random(7), free_port()
    board = await started(tmp_path, "-X", f"heapsize={HEAP}", "script.py", named(broker), str(port))
    try:
        async with Client(broker.urls, listen=HERE) as client:
            await client.subscribe((7,))
            await until(lambda: len(broker.registry) == 5 or board.returncode is not None)
            for number in range(200):
                data = b"%03d" % number + bytes(501)  # a frame of the longest size
                await client.publish((9,), data)
                async with asyncio.timeout(20):
                    assert (await client.receive()).data == data
                await asyncio.to_thread(noise, chance, port)
            await client.publish((9,), b"end")
            assert (await client.receive()).data == b"end"
    except BaseException:
        with suppress(ProcessLookupError):
            board.kill()
        raise
    finally:
        told, _ = await board.communicate()
        print(told.decode())
    free, sent, dropped, full, rejected = literal_eval(told.decode())
    assert (sent, dropped) == (402, 0)
    assert full + rejected > 100
    # Each is the most of ten times: the stack may hold something that is dead.
    assert free[b"19"] > free[b"10"] - 1000


async def test_the_files_as_they_are_move_between_brokers(tmp_path: Path, broker: Broker) -> None:
    (tmp_path / "script.py").write_text(UNCHANGED)
    port = free_port()
    board = await started(tmp_path, "script.py", f"127.0.0.1:{port}", named(broker), str(free_port()))
    try:
        await until(lambda: len(broker.registry) == 1)
        better = Broker(f"tcp://127.0.0.1:{port}")
        better.open(asyncio.get_running_loop())
        await until(lambda: len(better.registry) == 1)
        better.close()
        ((_, _, address),) = broker.registry.own()
        await asyncio.to_thread(say, address, pack(2, (token("set"), 5), b"on"))
        told, _ = await board.communicate()
        assert told.decode() == f"{(token('set'), 5)} b'on'\n"
    finally:
        if board.returncode is None:
            board.kill()
            await board.wait()


async def test_a_broker_is_found_at_the_other_address_of_its_name(tmp_path: Path, broker: Broker) -> None:
    (tmp_path / "script.py").write_text(TWO_ADDRESSES)
    address = f"gw.example:{broker.addresses[0][1]}"
    board = await started(tmp_path, "script.py", address, str(free_port()))
    try:
        await until(lambda: len(broker.registry) == 1 or board.returncode is not None)
        told, _ = await board.communicate()
        assert told == b""
        assert len(broker.registry) == 1
    finally:
        if board.returncode is None:
            board.kill()
            await board.wait()


async def test_the_program_of_the_page(tmp_path: Path, broker: Broker) -> None:
    (program,) = [code for code in blocks("python") if "buscoupler_tmq" in code]
    program = program.replace('"10.0.0.11:9942"', repr(named(broker)))
    (tmp_path / "main.py").write_text(program.replace("ifconfig()[0]", f"ifconfig()[0], {free_port()}"))
    (tmp_path / "network.py").write_text(NETWORK)
    board = await started(tmp_path, "main.py")
    try:
        async with Client(broker.urls, listen=HERE) as client:
            await client.subscribe("greenhouse")
            await client.publish(("greenhouse", "lamp"))
            async with asyncio.timeout(20):
                pattern, data = await client.receive()
                assert pattern == (token("greenhouse"), token("uptime"))
                assert data.isdigit()
                await until(lambda: client.subscribers(("greenhouse", "lamp")))
                await client.publish(("greenhouse", "lamp"), b"on")
                assert board.stdout
                assert await board.stdout.readline() == b"b'on'\n"
    finally:
        board.kill()
        await board.communicate()


async def test_the_loader_puts_it_on_a_board_with_a_small_heap(broker: Broker) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(ours)
    # It ends at a soft reset, where a board starts anew.
    board = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"while {MICROPYTHON} -X heapsize={HEAP}; do echo soft reboot; done"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    link = f'Tmq(["{named(broker)}"], "127.0.0.1", {free_port()})'
    app = f"node = TmqNode({link})\nnode.declare('up')\ndef work():\n    node.publish('too')\n"
    told: list[str] = []
    try:
        await asyncio.to_thread(load, Board(ours, timeout_s=40), ["tmq"], app, told.append)
        await until(lambda: len(broker.registry) == 2)
    finally:
        os.killpg(board.pid, signal.SIGKILL)
        await board.wait()
        os.close(ours)
        os.close(theirs)
    left = re.search(r"(\d+) bytes with the program", told[1])
    assert left
    assert int(left[1]) > 14000


def noise(chance: random.Random, port: int) -> None:
    """Connect with garbage, and with nothing."""
    with ExitStack() as stack:
        for packet in (garbage(chance), b"", garbage(chance)):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            sock.sendall(packet)
