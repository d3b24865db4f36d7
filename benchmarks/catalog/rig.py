"""A catalog under load: a thousand services on loopback, in one process, and what each way of life costs."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Final, Literal, NamedTuple

from benchmarks.processes import memory_mib, processor_s
from benchmarks.systems import COMMAND, BenchError, raise_file_limit
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Message, Socket
from tests.helpers.ports import free_port

HOST: Final = "127.0.0.1"
SERVICES: Final = 1000
INTERVAL_S: Final = 1.0
FILES: Final = 8192
ROUND_S: Final = 0.02  # between two batches of heartbeats
WAIT_S: Final = 60.0
REPLY_BYTES: Final = 8 << 20  # more than the longest list

Life = Literal["udp", "tcp", "ping"]
ECHO: Final = """
import asyncio, sys
class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport): self.transport = transport
    def datagram_received(self, data, address): self.transport.sendto(data, address)
async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(Echo, ("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


class Running(NamedTuple):
    """The process that is measured."""

    pid: int
    port: int


@contextmanager
def running(command: list[str], port: int) -> Iterator[Running]:
    """Run a program that prints a line when it is ready."""
    with Popen(command, stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise BenchError(f"{' '.join(command[:3])}: it ended")
            yield Running(process.pid, port)
        finally:
            process.kill()


def catalog(records: Path) -> "tuple[list[str], int]":
    """Return the command of a catalog, and its port."""
    port = free_port()
    url = f"tcp://{HOST}:{port}"
    return [str(COMMAND), "catalog", url, "--records", str(records), "--no-beacon"], port


def echo() -> "tuple[list[str], int]":
    """Return the command of the yardstick, which sends each datagram back and knows nothing, and its port."""
    port = free_port()
    return [sys.executable, "-c", ECHO, str(port)], port


class Service:
    """A service: a DEALER that registers, and with `ping` a ROUTER that answers."""

    def __init__(self, number: int, port: int, life: Life) -> None:
        self.name = f"service-{number}"
        self.approved = 0
        self.answered = 0
        loop = asyncio.get_running_loop()
        self._dealer = Socket("dealer", self._on_reply)
        self._router = Socket("router", self._on_ask)
        self._dealer.open(loop)
        self._router.open(loop)
        router = self._router.bind(HOST, 0) if life == "ping" else 1
        fields: dict[str, object] = {
            "name": self.name,
            "interfaces": {"router": {"ip": HOST, "port": router}},
        }
        if life != "ping":
            fields["liveliness"] = INTERVAL_S * 1000
        self._dealer.connect(HOST, port)
        self._dealer.send([b"", b"UwU", b"1", json.dumps(fields).encode()])

    def _on_reply(self, messages: list[Message]) -> None:
        self.approved += sum(message.frames[1] == b"OwO" for message in messages)
        self.answered += sum(message.frames[1] == b"u.u" for message in messages)

    def _on_ask(self, messages: list[Message]) -> None:
        for peer, _, _, when, *_ in (message.frames for message in messages):
            self.answered += self._router.send([peer, b"", b"pong", when, self.name.encode()])

    def beat(self) -> None:
        self._dealer.send([b"", b"<3", b"1", self.name.encode()])

    def close(self) -> None:
        self._dealer.close()
        self._router.close()


class Beats(asyncio.DatagramProtocol):
    """Counts the answers to heartbeats."""

    def __init__(self) -> None:
        self.answered = 0

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.answered += data.startswith(b"<3")


async def lives(target: Running, life: Life, services: int, seconds: float) -> dict[str, float]:
    """Let services live with a catalog for some time. Return what it cost, and how many beats it answered.

    `listed` is the part of the services that the catalog lists at the end.
    """
    raise_file_limit(FILES)
    made = [Service(number, target.port, life) for number in range(services)]
    end_s = time.monotonic() + WAIT_S
    while sum(service.approved for service in made) < services:
        if time.monotonic() > end_s:
            raise BenchError("the catalog did not approve all services")
        await asyncio.sleep(0.01)
    await _beats(target, life, made, INTERVAL_S)
    values = await _measured(target, life, made, seconds)
    values["listed"] = await _listed(target.port) / services
    for service in made:
        service.close()
    return values


async def _measured(target: Running, life: Life, made: list[Service], seconds: float) -> dict[str, float]:
    before_s, began_s = processor_s(target.pid), time.monotonic()
    answered_before = sum(service.answered for service in made)
    sent, answered = await _beats(target, life, made, seconds)
    answered += sum(service.answered for service in made) - answered_before
    took_s = time.monotonic() - began_s
    return {
        "core": (processor_s(target.pid) - before_s) / took_s,
        "answered_per_s": answered / took_s,
        "sent": float(sent),
        "mib": memory_mib(target.pid),
    }


async def _beats(target: Running, life: Life, made: list[Service], seconds: float) -> tuple[int, int]:
    """Send a heartbeat of each service in each interval. Return how many, and those answered by UDP."""
    loop = asyncio.get_running_loop()
    transport, beats = await loop.create_datagram_endpoint(Beats, remote_addr=(HOST, target.port))
    began_s, sent = loop.time(), 0
    while (passed_s := loop.time() - began_s) < seconds:
        due = int(passed_s / INTERVAL_S * len(made))
        while sent < due and life != "ping":
            service = made[sent % len(made)]
            if life == "tcp":
                service.beat()
            else:
                transport.sendto(f"<3 {time.time():.6f} {service.name}".encode())
            sent += 1
        await asyncio.sleep(ROUND_S)
    transport.close()
    return sent, beats.answered


async def echoed(target: Running, services: int, seconds: float) -> dict[str, float]:
    """Send as many datagrams to the yardstick."""

    class _Named(NamedTuple):
        name: str

    before_s, began_s = processor_s(target.pid), time.monotonic()
    _, answered = await _beats(target, "udp", [_Named(f"service-{n}") for n in range(services)], seconds)  # type: ignore[misc]
    took_s = time.monotonic() - began_s
    return {"core": (processor_s(target.pid) - before_s) / took_s, "answered_per_s": answered / took_s}


async def _listed(port: int) -> int:
    """Return how many services a catalog lists."""
    heard: list[Message] = []
    client = Socket("dealer", heard.extend, Limits(message_bytes=REPLY_BYTES))
    client.open(asyncio.get_running_loop())
    client.connect(HOST, port)
    client.send([b"", b"u_U", b"1", b""])
    end_s = time.monotonic() + WAIT_S
    while not heard and time.monotonic() < end_s:
        await asyncio.sleep(0.005)
    client.close()
    return len(json.loads(heard[0].frames[3])) if heard else 0
