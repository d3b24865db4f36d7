"""The throughput of the links as a share of what the lines can carry, and the processor time of a frame.

The links are the real ones. The lines are simulated with their bit times in virtual time
(`bridges.simulate`). A pseudo-terminal behind a relay that limits the rate runs in real time. Multicast is
compared with a loop that only calls `sendto`.
"""

import asyncio
import os
import socket
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.formats import frame_of
from bridges.media.can import codec as can
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.uart import codec as uart
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bridges.simulate import CanWire, SerialLine, run
from bus.hub import Hub, Link, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads

SIZES = (64, 1024)
BAUD = 3_000_000
SIMULATED_S = 2.0
REAL_S = 2.0
_LATE_S = 0.1
GROUP, INTERFACE = "239.255.77.9", "lo"


class Carried(NamedTuple):
    """The result of one line. `limit_fps` is what framing allows, `carried` the share that arrived, `cpu_us`
    the processor time of a frame at both ends."""

    line: str
    size: int
    limit_fps: float
    carried: float
    cpu_us: float

    @property
    def core(self) -> float:
        """The share of one core that both ends take while the line is full."""
        return self.limit_fps * self.cpu_us / 1e6


class Counter(Pipe):
    """A pipe that counts the messages and bytes it receives."""

    def __init__(self, hub: Hub) -> None:
        self.name, self.stats, self.count, self.bytes = "counter", Stats(), 0, 0
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        self.count += batch.count
        self.bytes += len(batch.data)

    def close(self) -> None: ...


async def saturate(near: Link, far: Link, size: int, seconds: float) -> tuple[float, float]:
    """Keep the queue filled. Return the frames a second that arrived, and the processor time of one in us."""
    loop = asyncio.get_running_loop()
    hub, receiver = Hub("near"), Counter(far_hub := Hub("far"))
    near.open(hub, loop)
    far.open(far_hub, loop)
    while not (hub.pipes and len(far_hub.pipes) > 1):
        await asyncio.sleep(0.001)
    batch = from_payloads([frame_of(size, n) for n in range(8)])
    pipe = hub.pipes[0]
    start_s = count = cpu_s = 0.0
    while not start_s or loop.time() < start_s + seconds:
        while pipe.stats.queued_bytes < 16_384:
            hub.publish(batch)
        await asyncio.sleep(0.002)
        if not start_s and receiver.count > 20:  # the line is full by now
            start_s, count, cpu_s = loop.time(), receiver.count, time.process_time()
    span_s = loop.time() - start_s
    received, cpu_s = receiver.count - count, time.process_time() - cpu_s
    near.close()
    far.close()
    return received / span_s, cpu_s / max(1, received) * 1e6


def uart_limit(size: int, baud: int = BAUD) -> float:
    """Return the most frames a second on 8N1 at `baud`, with framing."""
    return baud / 10 / len(uart.encode(frame_of(size)))


def can_limit(wire: CanWire, size: int, fd: bool) -> float:
    """Return the most transfers a second, without stuff bits."""
    from can import Message

    frames = [
        Message(arbitration_id=1, is_extended_id=True, is_fd=fd, bitrate_switch=fd, data=data)
        for data in can.segment(frame_of(size), 0, fd)
    ]
    return 1 / sum(wire.frame_s(frame) for frame in frames)


def simulated_uart(size: int) -> Carried:
    async def scenario() -> tuple[float, float]:
        line = SerialLine(BAUD)
        return await saturate(line.link("a"), line.link("b"), size, SIMULATED_S)

    fps, cpu_us = run(scenario())
    limit = uart_limit(size)
    return Carried("UART 3 Mbaud, simulated", size, limit, fps / limit, cpu_us)


def simulated_can(size: int, fd: bool) -> Carried:
    wire = CanWire(1_000_000, 5_000_000)

    async def scenario() -> tuple[float, float]:
        return await saturate(wire.link(1, fd=fd), wire.link(2, fd=fd), size, SIMULATED_S)

    fps, cpu_us = run(scenario())
    limit = can_limit(wire, size, fd)
    name = "CAN FD 1M/5M, simulated" if fd else "CAN 1 Mbit/s, simulated"
    return Carried(name, size, limit, fps / limit, cpu_us)


@contextmanager
def paced_line(baud: int) -> Iterator[tuple[str, str]]:
    """Yield two pseudo-terminals. A thread carries bytes from the first to the second at `baud` at most."""
    pairs = [os.openpty() for _ in range(2)]
    for pair in pairs:
        for fd in pair:
            tty.setraw(fd)
    stop = threading.Event()
    thread = threading.Thread(target=_carry, args=(pairs[0][0], pairs[1][0], baud, stop), daemon=True)
    thread.start()
    try:
        yield os.ttyname(pairs[0][1]), os.ttyname(pairs[1][1])
    finally:
        stop.set()
        thread.join()
        for pair in pairs:
            for fd in pair:
                os.close(fd)


def _carry(source: int, sink: int, baud: int, stop: threading.Event) -> None:
    """Carry bytes of ten bits each. An idle line saves up no time, but a late thread catches up to 0.1 s."""
    os.set_blocking(source, False)
    due_s = time.monotonic()
    while not stop.is_set():
        now_s = time.monotonic()
        due_s = max(due_s, now_s - _LATE_S)
        room = int((now_s - due_s) * baud / 10)
        try:
            data = os.read(source, room) if room else b""
        except BlockingIOError:
            data, due_s = b"", now_s
        due_s += len(data) * 10 / baud
        while data:
            data = data[os.write(sink, data) :]
        time.sleep(0.0005)


def pty_uart(size: int) -> Carried:
    """Measure in real time. The processor time includes the relay's."""

    async def scenario(near: str, far: str) -> tuple[float, float]:
        one, other = (UartLink(Uart(port=port, baud=BAUD)) for port in (near, far))
        return await saturate(one, other, size, REAL_S)

    with paced_line(BAUD) as (near, far):
        fps, cpu_us = asyncio.run(scenario(near, far))
    limit = uart_limit(size)
    return Carried("UART 3 Mbaud, pty", size, limit, fps / limit, cpu_us)


LINES: dict[str, Callable[[int], Carried]] = {
    "uart": simulated_uart,
    "pty": pty_uart,
    "can": lambda size: simulated_can(size, fd=False),
    "canfd": lambda size: simulated_can(size, fd=True),
}


class Sent(NamedTuple):
    """Frames a second and processor time of a frame, for a link and for a loop that only calls `sendto`."""

    size: int
    link_fps: float
    loop_fps: float
    link_us: float
    loop_us: float


def multicast(size: int) -> Sent:
    """Compare a link that sends 64 KiB batches with a loop that sends a datagram for each frame."""
    batch = from_payloads([frame_of(size, n) for n in range(max(1, 65_536 // size))])
    link_fps, link_us = asyncio.run(_through_link(batch))
    loop_fps, loop_us = _through_sendto(frame_of(size))
    return Sent(size, link_fps, loop_fps, link_us, loop_us)


async def _through_link(batch: Batch) -> tuple[float, float]:
    group = Multicast(group=GROUP, port=49_943, interface=INTERFACE, hops=0)
    link: Any = MulticastLink(group, loopback=False)
    hub = Hub()
    link.open(hub, asyncio.get_running_loop())
    while not hub.pipes:
        await asyncio.sleep(0.001)
    start_s, cpu_s, stats = time.monotonic(), time.process_time(), link.stats
    while time.monotonic() < start_s + REAL_S / 2:
        for _ in range(10):
            hub.publish(batch)
        await asyncio.sleep(0)
    sent = stats.sent
    result = sent / (time.monotonic() - start_s), (time.process_time() - cpu_s) / max(1, sent) * 1e6
    link.close()
    return result


def _through_sendto(frame: bytes) -> tuple[float, float]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        start_s, cpu_s, sent, address = time.monotonic(), time.process_time(), 0, (GROUP, 49_944)
        while time.monotonic() < start_s + REAL_S / 2:
            for _ in range(100):
                sock.sendto(frame, address)
            sent += 100
        return sent / (time.monotonic() - start_s), (time.process_time() - cpu_s) / sent * 1e6
