"""A link over a shared RS-485 pair: one device, one pipe, and polled nodes (docs/wire/uart.md).

The pair is one segment on which all hear each other. So it is one pipe, and nothing is relayed between nodes.
"""

from math import inf
from typing import Any

from bridges.media.device import OpenPipe, PipeContext, cancel
from bridges.media.shedding import Shed
from bridges.media.uart.line import SerialLink, SerialPipe
from bridges.media.uart.medium import Uart
from bridges.media.uart.poll import Master, NodeHealth, Own, parse_control
from bridges.media.uart.port import Port
from bus.errors import LinkError
from bus.wire.batch import Batch, payloads


class Rs485Link(SerialLink):
    """The master of a shared pair, as a link; its options have `rs485`.

    Nodes are polled in turn. A node begins its answer within `answer_ms` of the end of its poll; add the
    delay of the adapter (16 ms for some on USB). A node without a message is polled again after `idle_ms`,
    and after up to ten times that while it stays idle. `nodes` is the health of each node; its counts
    continue over reopenings. `shed` and `retry` are those of `UartLink`.
    """

    def __init__(self, options: Uart, shed: Shed | None = None, idle_ms: float = 5, **retry: Any) -> None:
        super().__init__(f"rs485:{options.port}", options, shed, **retry)
        if options.rs485 is None or not options.rs485.nodes or idle_ms < 0:
            raise LinkError(
                f"{self.name}: the options need rs485 with nodes, and idle_ms must not be below 0"
            )
        self._pair, self._idle_s = options.rs485, idle_ms / 1000
        self.nodes = {address: NodeHealth() for address in options.rs485.nodes}

    def master(self) -> Master:
        """Make a new master with the settings of this link. It counts into the link's stats."""
        return Master(
            self.nodes,
            self.options.byte_s,
            self._pair.answer_ms / 1000,
            self._pair.turnaround_ms / 1000,
            self._idle_s,
            self.echoes,
            self.stats.rejected,
        )

    def _make_pipe(self, device: Port, context: PipeContext) -> OpenPipe:
        return Rs485Pipe(self, device, context)


class Rs485Pipe(SerialPipe):
    """All nodes of the pair, as one peer. It writes one message at a time: a poll or one of our own."""

    def __init__(self, link: Rs485Link, port: Port, context: PipeContext) -> None:
        self._master = link.master()
        super().__init__(link, port, context, self._master.decoder)
        self._left = b""  # the rest of the current message that the driver has not accepted
        self._size, self._own = 0, False  # length of the whole message; whether it is our own

    def start(self) -> None:
        super().start()
        self._run()

    def _hear(self, data: bytes) -> list[bytes]:
        return self._master.hear(data, self._loop.time())

    def _on_readable(self) -> None:
        super()._on_readable()
        self._run()

    def _put(self, batch: Batch) -> None:
        messages = payloads(batch)
        polls = sum(parse_control(message) is not None for message in messages)
        if polls:
            self.stats.drop("control", polls)
            messages = [message for message in messages if parse_control(message) is None]
        self._outbox.put(messages, self._loop.time())
        self._run()

    def _run(self) -> None:
        """Write while the line is free; then wait for the driver or the next deadline."""
        self._disarm()
        while not self._closed:
            if self._left and not self._write():
                return
            now = self._loop.time()
            self._outbox.expire(now)
            turn = self._master.step(now, self._outbox.ready(now), self._port.waiting())
            if turn is None:
                return self._arm(self._deadline(now))
            self._own = isinstance(turn, Own)
            self._left = self._outbox.claim(now) if isinstance(turn, Own) else turn
            self._size = len(self._left)

    def _deadline(self, now: float) -> float:
        ready_s = self._outbox.ready_s()
        return min(self._master.deadline, ready_s) if ready_s > now else self._master.deadline

    def _write(self) -> bool:
        """Write what is left of the current message. Return whether the driver accepted all of it."""
        try:
            count = self._write_out(self._left)
        except OSError as error:
            self._lose(error)
            return False
        self._left = self._left[count:]
        sent = self._outbox.settle(count) if self._own else []
        if self._left:
            self._wait(self._run)
            return False
        self._rest()
        self._master.wrote(self._size, self._loop.time(), sent[0] if sent else None)
        return True

    def _arm(self, deadline: float) -> None:
        if deadline < inf:
            self._timer = self._loop.call_at(deadline, self._run)

    def _disarm(self) -> None:
        cancel(self._timer)
        self._timer = None
