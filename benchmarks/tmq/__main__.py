"""A measurement of the messages a second from one TMQ publisher to one subscriber, in two processes.

    python -m benchmarks.tmq

It compares one connection for all packets (both ends are ours) with one connection for each packet (the
subscriber behaves as the 2015 reference: it reads one packet and closes), and both with the way through a
bridge between two TMQ networks, which is a process of its own.
"""

import asyncio
import multiprocessing as mp
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection as End
from pathlib import Path
from statistics import median

from benchmarks.command import Command, run_as_command
from bus.tmq import Client, tmq_bind, tmq_broker, tmq_init, tmq_publish, tmq_send, tmq_socket
from bus.tmq.broker import Broker
from bus.tmq.wire import SUBSCRIBE, pack_address

PATTERN = (1, 2)
DATA = bytes(64)
SECONDS = 3.0
_TWO = """\
name: two
gateways: {{gw: {{address: 127.0.0.1, node: 1}}}}
bridges:
  joint:
    on: gw
    join:
      - tmq: {{brokers: ["{}"], publish: []}}
      - tmq: {{brokers: ["{}"], subscribe: []}}
"""


def ours(broker: tuple[str, int], end: End) -> None:
    """Subscribe, count messages, and send the count to `end` when asked."""

    async def run() -> None:
        async with Client([broker], ("127.0.0.1", 0), queue_messages=1 << 20) as client:
            await client.subscribe((1,))
            end.send(0)
            loop, asked = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(end.fileno(), asked.set)
            while not asked.is_set():
                await asyncio.sleep(0.01)
                while client.receive_nowait() is not None:
                    pass
            end.send(client.inbox.offered)

    asyncio.run(run())


def reference(broker: tuple[str, int], end: End) -> None:
    """Behave as the reference: accept, read once, close."""
    from bus.wire.frame import pack

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        with socket.create_connection(broker) as sock:
            sock.sendall(pack(SUBSCRIBE, PATTERN, pack_address(listener.getsockname())))
        end.send(0)
        count = 0
        listener.settimeout(0.2)
        while not end.poll():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            count += len(connection.recv(2056)) > 0
            connection.close()
        end.send(count)


def modern(broker: tuple[str, int], end: End) -> None:
    async def run() -> None:
        async with Client([broker], ("127.0.0.1", 0)) as client:
            await client.publish(PATTERN)
            while not client.subscribers(PATTERN):
                await asyncio.sleep(0.01)
            stop = time.monotonic() + SECONDS
            while time.monotonic() < stop:
                for _ in range(64):
                    await client.publish(PATTERN, DATA)
                while client.stats.queued > 5000:
                    await asyncio.sleep(0)
            end.send(client.stats.sent)

    asyncio.run(run())


def classic(broker: tuple[str, int], end: End) -> None:
    with tmq_init() as context:
        sock = tmq_socket(context)
        tmq_bind(sock, ("127.0.0.1", 0))
        tmq_broker(sock, broker)
        tmq_publish(sock, PATTERN)
        stop = time.monotonic() + SECONDS
        while time.monotonic() < stop:
            for _ in range(64):
                tmq_send(sock, PATTERN, DATA)
            while sock.stats.queued > 5000:
                time.sleep(0.0001)
        end.send(sock.stats.sent)


def serve(end: End) -> None:
    async def run() -> None:
        broker = Broker("tcp://127.0.0.1:0")
        broker.open(asyncio.get_running_loop())
        end.send(broker.addresses[0])
        await asyncio.Event().wait()

    asyncio.run(run())


def started(target: Callable[..., None], *arguments: object) -> tuple[mp.Process, End]:
    mine, theirs = mp.Pipe()
    process = mp.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    return process, mine


@contextmanager
def bridge(near: tuple[str, int], far: tuple[str, int]) -> Iterator[None]:
    """Run a gateway that joins the networks of two brokers."""
    text = _TWO.format(f"tcp://{near[0]}:{near[1]}", f"tcp://{far[0]}:{far[1]}")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "two.yaml"
        file.write_text(text)
        command = [sys.executable, "-m", "buscoupler", "run", str(file), "--run-directory", directory]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.terminate()


def measure(
    publisher: Callable[..., None], subscriber: Callable[..., None], bridged: bool = False
) -> tuple[float, float]:
    """Return the messages a second that the subscriber received, and the part of those sent that these are.

    `bridged`: the subscriber is on the network of another broker.
    """
    with ExitStack() as stack:
        wheres = []
        for _ in range(1 + bridged):
            serving, end = started(serve)
            stack.callback(serving.kill)
            wheres.append(end.recv())
        _, receiving = started(subscriber, wheres[-1])
        receiving.recv()
        if bridged:
            stack.enter_context(bridge(wheres[0], wheres[1]))
        _, sending = started(publisher, wheres[0])
        sent = sending.recv()
        receiving.send(0)
        count = receiving.recv()
        return count / SECONDS, count / sent


def main() -> None:
    Command("benchmarks.tmq", __doc__).parse_args()
    for face in (modern, classic):
        for other, what in ((ours, "one connection for all"), (reference, "one connection a packet")):
            rate = median(measure(face, other)[0] for _ in range(3))
            print(f"{face.__name__:8} {what:24} {rate:10,.0f} messages/s of {len(DATA)} B (median of 3)")
    for other, what in ((ours, "one connection for all"), (reference, "one connection a packet")):
        runs = [(measure(modern, other)[0], *measure(modern, other, True)) for _ in range(3)]
        ratio, rate, part = (
            median(column) for column in zip(*[(b / a, b, c) for a, b, c in runs], strict=True)
        )
        print(f"bridge   {what:24} {rate:10,.0f} messages/s, {part:.0%} of those sent, {ratio:.2f} of direct")


if __name__ == "__main__":
    run_as_command(main)
