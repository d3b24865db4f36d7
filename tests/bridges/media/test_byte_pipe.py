"""Bytes through buses: a serial line and a socket are one pipe, exact both ways, and a gap in it is told."""

import asyncio
import os
import shutil
import socket
import subprocess
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridges.media.tcp.medium import Tcp
from bridges.media.uart.medium import Uart
from bridges.protocols.bytes.protocol import Bytes
from bus.hub import Hub, Link
from bus.transports.dialling import DialLink
from bus.transports.listening import ListenLink
from tests.bridges.media.carriers import RETRY, received
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import PtyPair, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port

DEVICE = Bytes(receive=("console", "out"), send=("console", "in"), silence_ms=1)
DESK = Bytes(receive=("console", "in"), send=("console", "out"), silence_ms=1)
QUEUE: dict[str, Any] = {"queue_bytes": 16 << 20}
SIZE = 1 << 20


@pytest.fixture
def links() -> Iterator[list[Link]]:
    made = list[Link]()
    yield made
    for link in made:
        link.close()


@pytest.fixture
def ser2net(line: PtyPair, tmp_path: Path) -> Iterator[int]:
    """Run ser2net between a TCP port and the line; return the port."""
    if shutil.which("ser2net") is None:
        pytest.skip("Debian package ser2net")
    port, file = free_port(), tmp_path / "ser2net.yaml"
    file.write_text(
        f"connection: &line\n  accepter: tcp,127.0.0.1,{port}\n"
        f"  connector: serialdev,{line.path},115200n81,local\n"
    )
    command = ["ser2net", "-n", "-u", "-c", str(file), "-P", str(tmp_path / "pid")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield port
        process.terminate()


async def desk_of(device: Link, links: list[Link], desk_speaks: Bytes = DESK) -> socket.socket:
    """Put a device on a hub, a desk on another, a bus between them, and return a socket at the desk."""
    near, far = Hub(), Hub()
    loop = get_running_loop()
    bus = ListenLink("tcp://127.0.0.1:0", **QUEUE)
    desk = Tcp(host="127.0.0.1", port=0, mode="listen", **QUEUE).speaking(desk_speaks)
    links += [bus, device, desk]
    bus.open(near, loop)
    trunk = DialLink(bus.url, **QUEUE)
    links.append(trunk)
    trunk.open(far, loop)
    device.open(near, loop)
    desk.open(far, loop)
    sock = socket.create_connection(("127.0.0.1", int(desk.url.rpartition(":")[2])))
    sock.setblocking(False)
    await until(lambda: len(near.pipes) == len(far.pipes) == 2)
    return sock


async def exchange(line: PtyPair, sock: socket.socket) -> tuple[bytes, bytes, bytes, bytes]:
    """Send different bytes both ways at once. Return what was sent and what came, from the line first."""
    there, back = os.urandom(SIZE), os.urandom(SIZE)
    sent = [0, 0]
    came = [bytearray(), bytearray()]

    def step() -> bool:
        with suppress(BlockingIOError):
            sent[0] += os.write(line.master, there[sent[0] : sent[0] + 4096]) if sent[0] < SIZE else 0
        with suppress(BlockingIOError):
            sent[1] += sock.send(back[sent[1] : sent[1] + 65536]) if sent[1] < SIZE else 0
        came[0] += received(sock)
        came[1] += line.read()
        return len(came[0]) >= SIZE and len(came[1]) >= SIZE

    await until(step)
    return there, bytes(came[0]), back, bytes(came[1])


async def test_a_serial_line_and_a_socket_are_one_pipe(line: PtyPair, links: list[Link]) -> None:
    device = Uart(port=str(line.path), baud=20_000_000, **QUEUE).speaking(DEVICE, **RETRY)
    with await desk_of(device, links) as sock:
        there, came, back, gone = await exchange(line, sock)
    assert there == came
    assert back == gone


async def test_ser2net_at_the_other_end(line: PtyPair, ser2net: int, links: list[Link]) -> None:
    device = Tcp(host="127.0.0.1", port=ser2net, **QUEUE).speaking(DEVICE, **RETRY)
    with await desk_of(device, links) as sock:
        there, came, back, gone = await exchange(line, sock)
    assert there == came
    assert back == gone


async def test_what_a_full_queue_drops_is_a_gap_and_nothing_is_invented(
    line: PtyPair, links: list[Link], caplog: pytest.LogCaptureFixture
) -> None:
    device = Uart(port=str(line.path), baud=20_000_000, queue_bytes=16384).speaking(DEVICE, **RETRY)
    numbers = b"".join(b"%07d\n" % number for number in range(1, 40_001))
    with await desk_of(device, links, replace(DESK, silence_ms=2000)) as sock:
        pipe, at, came = device.pipe, 0, bytearray()  # type: ignore[attr-defined]
        while at < len(numbers) or not pipe.stats.dropped:
            with suppress(BlockingIOError):
                at += sock.send(numbers[at : at + 65536])
            await asyncio.sleep(0)

        def is_whole() -> bool:
            came.extend(line.read())
            if came and not pipe.stats.queued:
                with suppress(BlockingIOError):
                    sock.send(b"%07d\n" % 0 * 128)
            return came.endswith(b"%07d\n" % 0)

        await until(is_whole)
    found = [int(number) for number in bytes(came).splitlines()]
    kept = [number for number in found if number]
    assert kept == sorted(set(kept))
    assert pipe.stats.rejected == {"gap": pipe.stats.dropped["queue full"]}
    assert len(numbers) - 8 * len(kept) <= 1024 * pipe.stats.rejected["gap"]
    assert device.condition == "chunks are missing in what leaves here: see the counts"
    assert caplog.text.count("chunks are missing") == 1


@pytest.mark.parametrize("mode", ["listen", "dial"])
async def test_a_gap_closes_the_connection_if_that_is_asked_for(mode: Any) -> None:
    hub, loop = Hub(), get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = 0 if mode == "listen" else server.getsockname()[1]
        link = Tcp(host="127.0.0.1", port=port, mode=mode).speaking(Bytes(send=("in",), on_gap="end"))
        link.open(hub, loop)
        if mode == "listen":
            peer = socket.create_connection(("127.0.0.1", int(link.url.rpartition(":")[2])))
        else:
            peer, _ = await loop.run_in_executor(None, server.accept)
        with peer:
            await until(lambda: len(hub.pipes) == 1)
            say(hub, None, message("in/7/0", b"a"), message("in/7/2", b"c"))
            peer.settimeout(10)
            assert await loop.run_in_executor(None, peer.recv, 10) == b"a"
            assert await loop.run_in_executor(None, peer.recv, 10) == b""
        link.close()
    stats = hub.accounts()[link.name].stats
    assert (stats.dropped, stats.rejected) == ({"after a gap": 1}, {"gap": 1})
