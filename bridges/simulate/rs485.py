"""RS-485 on a simulated pair: the real master, and nodes that answer its polls as a microcontroller does."""

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from math import inf
from typing import Any

from bridges.media.device import OpenPipe, PipeContext, cancel
from bridges.media.shedding import fitting
from bridges.media.uart.codec import encode
from bridges.media.uart.medium import Rs485, Uart
from bridges.media.uart.poll import DONE, PolledNode, control
from bridges.media.uart.port import Port
from bridges.media.uart.rs485 import Rs485Link
from bridges.simulate.uart import SerialEnd, SerialPort
from bridges.simulate.wire import divide, settings
from bus.hub import Hub
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads

_QUEUE_BYTES = 64 * 1024


class SimulatedRs485(Rs485Link):
    """An `Rs485Link` whose device is one end of a simulated shared pair; the rest is the real link."""

    def __init__(self, end: SerialEnd, **options: Any) -> None:
        pair, options = divide(Rs485, options)
        line: dict[str, Any] = {"port": end.name, "baud": end.line.baud, "echo": end.line.echo}
        uart, rest = settings(end.line, Uart, options, rs485=Rs485(**pair), **line)
        super().__init__(uart, **rest)
        self.end = end

    def _open_device(self) -> Port:
        return SerialPort(self.end, self._loop)


class Rs485Node(OpenPipe):
    """A node of a shared pair as the only pipe of `hub`. Messages from the hub wait for the master's poll.

    `port` is a `SerialPort`, or anything with the methods of `bridges.media.uart.port.Port`. `polled` counts
    the polls that the node answered.
    """

    def __init__(
        self,
        port: Port,
        address: int,
        hub: Hub,
        loop: AbstractEventLoop,
        queue_bytes: int = _QUEUE_BYTES,
        **options: Any,
    ) -> None:
        self._node = PolledNode(address, queue_messages=queue_bytes, **options)
        stats = Stats(rejected=self._node.rejected)
        super().__init__(PipeContext(f"node {address}", stats, hub, loop, on_close=lambda _: None))
        self.polled = 0
        self._port, self._queue_bytes = port, queue_bytes
        self._done = encode(control(address, DONE))
        self._queue: deque[bytes] = deque()
        self._left = b""
        self._timer: TimerHandle | None = None
        self.start()

    def start(self) -> None:
        """Listen on the port and join the hub."""
        self._loop.add_reader(self._port.fileno(), self._on_readable)
        self._hub.attach(self)

    def _on_readable(self) -> None:
        try:
            data = self._port.read()
        except OSError:
            return self.close()
        messages = self._node.hear(data, self._loop.time())
        if messages:
            self._hub.publish(from_payloads(messages), self)
        if self._node.deadline < inf and self._timer is None:
            self._timer = self._loop.call_at(self._node.deadline, self._answer)

    def _answer(self) -> None:
        self._timer = None
        if self._closed:
            return
        answer = self._node.step(self._loop.time())
        self.polled += bool(answer)
        if answer and answer != self._done:
            self._settle(len(answer))
        self._left += answer
        self._write()

    def _settle(self, size: int) -> None:
        self._queue.popleft()
        stats = self.stats
        stats.queued, stats.sent = stats.queued - 1, stats.sent + 1
        stats.queued_bytes = sum(map(len, self._queue))
        stats.sent_bytes += size

    def _write(self) -> None:
        self._loop.remove_writer(self._port.fileno())
        try:
            self._left = self._left[self._port.write(self._left) :]
        except OSError:
            return self.close()
        if self._left:
            self._loop.add_writer(self._port.fileno(), self._write)

    def _put(self, batch: Batch) -> None:
        stats = self.stats
        for message in fitting(payloads(batch), stats):
            if stats.queued_bytes + len(message) > self._queue_bytes:
                stats.drop("queue full")
            else:
                self._node.put([message])
                self._queue.append(message)
                stats.queued += 1
                stats.queued_bytes += len(message)

    def _end(self, why: str) -> None:
        cancel(self._timer)
        self._loop.remove_reader(self._port.fileno())
        self._loop.remove_writer(self._port.fileno())
        if self._queue:
            self.stats.drop("closed", len(self._queue))
            self._queue.clear()
        self.stats.queued = self.stats.queued_bytes = 0
        self._port.close()


def rs485_node(end: SerialEnd, address: int, hub: Hub, loop: AbstractEventLoop, **options: Any) -> Rs485Node:
    """Return a node on an end of a simulated pair, joined to `hub`."""
    return Rs485Node(SerialPort(end, loop), address, hub, loop, echo=end.line.echo, **options)
