"""Ten thousand clients of one host at one broker, in two processes: one has not descriptors for both ends."""

import asyncio
import resource
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bus.tmq.wire import (
    ADD,
    ANSWER,
    ANSWERED,
    HELLO,
    PUBLISH,
    SUBSCRIBE,
    Address,
    Cutter,
    Hello,
    data_of,
    pack_address,
    pack_hello,
    unpack_addresses,
    unpack_hello,
)
from bus.wire.frame import pack

COUNT = 10_000
BROKER = """
import asyncio, resource
from bus.tmq.broker import Broker
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
async def main():
    broker = Broker("tcp://127.0.0.1:0", heartbeat_s=10.0)
    broker.open(asyncio.get_running_loop())
    print(broker.addresses[0][1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < COUNT + 500:
        pytest.skip(f"a process may have {hard} descriptors here, and this needs {COUNT + 500}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, COUNT + 500), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def joined(
    stack: ExitStack, broker: Address, number: int, kind: int, tokens: tuple[int, ...]
) -> socket.socket:
    """Return a connection on which a client of ours has greeted, registered, and asked for an answer."""
    sock = stack.enter_context(socket.socket())
    sock.connect(broker)
    here = "127.0.0.1", 10_000 + number
    hello = Hello(number, 60_000, address=here)
    asks = hello._replace(flags=ANSWER)
    sock.sendall(pack_hello(hello) + pack(kind, tokens, pack_address(here)) + pack_hello(asks))
    return sock


def answered(sock: socket.socket) -> tuple[bool, list[Address]]:
    """Wait until a broker has answered. Return whether it refused nothing, and the subscribers it named."""
    cutter, named, taken = Cutter(), list[Address](), True
    while True:
        for frame in cutter.cut(sock.recv(1 << 16)):
            if frame[0] == ADD:
                named += unpack_addresses(data_of(frame))[0]
            elif frame[0] != HELLO:
                taken = False
            elif (hello := unpack_hello(data_of(frame))) and hello.flags & ANSWERED:
                return taken, named


async def test_ten_thousand_clients_of_one_host_are_taken_and_named_to_a_publisher(descriptors: None) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BROKER, stdout=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    broker = "127.0.0.1", int(await program.stdout.readline())
    try:
        with ExitStack() as stack:
            await asyncio.to_thread(_crowd, stack, broker)
    finally:
        program.kill()
        await program.wait()


def _crowd(stack: ExitStack, broker: Address) -> None:
    crowd = [joined(stack, broker, number, SUBSCRIBE, (1,)) for number in range(COUNT)]
    assert all(answered(sock) == (True, []) for sock in crowd)
    publisher = joined(stack, broker, COUNT, PUBLISH, (1, 2))
    taken, named = answered(publisher)
    assert taken
    assert len(set(named)) == COUNT
    heard = [sock.recv(1 << 16) for sock in select.select(crowd[:100], [], [], 0)[0]]
    # Nobody was turned out: what comes meanwhile is the broker's sign of life.
    assert {frame[0] for data in heard for frame in Cutter().cut(data)} <= {HELLO}
    assert all(heard)
