"""A link over a serial line: one device, one pipe (docs/wire/uart.md)."""

from asyncio import TimerHandle
from math import inf
from typing import Any

from bridges.media.device import OpenPipe, PipeContext, cancel
from bridges.media.shedding import Shed
from bridges.media.uart.codec import Decoder
from bridges.media.uart.echo import without_echo
from bridges.media.uart.line import SerialLink, SerialPipe
from bridges.media.uart.medium import Uart
from bridges.media.uart.port import Port
from bridges.media.uart.rs485 import Rs485Link
from bus.errors import LinkError
from bus.wire.batch import Batch, payloads

_AHEAD_BYTES_MIN = 64  # allowed in the driver even on the slowest line: the FIFO of an adapter
_PAUSE_MIN_S = 0.001
_FULL_BYTES = 2048  # of a read: more may be waiting
ECHO_S = 0.25  # longest delay of an echo after its time on the line; adapters wait up to 16 ms


def uart_link(options: Uart, **rest: Any) -> SerialLink:
    """Make the link for `options`: for a line of two ends, or for a pair whose nodes are polled."""
    return UartLink(options, **rest) if options.rs485 is None else Rs485Link(options, **rest)


class UartLink(SerialLink):
    """A serial port as a link.

    Messages above `queue_bytes` are dropped as `queue full`. `shed` is a whole policy that replaces
    `queue_bytes`. No policy reaches the driver's buffer, so it is filled with at most `ahead_ms` of the
    line's time, and at most half the age of the policy. An `echo` is counted in `stats.rejected["echo"]`;
    one that did not come back undamaged in `echoes_lost`. `retry`: `transceiver` of `SerialLink`;
    `retry_min_s`, `retry_max_s` and `jitter` of `DeviceLink`. Raises `LinkError` for settings that can never
    work.
    """

    def __init__(self, options: Uart, shed: Shed | None = None, ahead_ms: float = 40, **retry: Any) -> None:
        super().__init__(f"uart:{options.port}", options, shed, **retry)
        if ahead_ms <= 0:
            raise LinkError(f"{self.name}: ahead_ms must be above 0, not {ahead_ms}")
        self._ahead_s = ahead_ms / 1000

    @property
    def ahead_bytes(self) -> int:
        """The most that the driver may hold, in bytes."""
        ahead_s = min(self._ahead_s, (self.shed.age_s or inf) / 2)
        return max(_AHEAD_BYTES_MIN, int(ahead_s / self.options.byte_s))

    def _make_pipe(self, device: Port, context: PipeContext) -> OpenPipe:
        return UartPipe(self, device, context)


class UartPipe(SerialPipe):
    """The one peer of a serial line: everything at its far end."""

    def __init__(self, link: UartLink, port: Port, context: PipeContext) -> None:
        super().__init__(link, port, context, Decoder(link.stats.rejected))
        self._link = link
        self._byte_s, self._ahead_bytes, self._echoes = link.options.byte_s, link.ahead_bytes, link.echoes
        self._age_s = link.shed.age_s
        self._tending: TimerHandle | None = None
        self._gather_s = link.options.gather_ms / 1000
        self._free_s = 0.0  # until then what comes gathers
        self._again: TimerHandle | None = None

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy, for the driver's buffer too."""
        self._ahead_bytes, self._age_s = self._link.ahead_bytes, shed.age_s
        super().revise(shed)
        if not self._waiting:
            cancel(self._timer)
            self._flush()
        return True

    def _on_readable(self) -> None:
        """Read at once; but let what comes soon after the last read gather, if `gather_ms` asks for that."""
        if self._again is None and self._loop.time() < self._free_s and not self._lost:
            self._look_later()
        else:
            super()._on_readable()

    def _hear(self, data: bytes) -> list[bytes]:
        messages = without_echo(self._decoder, data, self._echoes, self._loop.time())
        if self._gather_s:
            self._pace(len(data), len(messages))
        return messages

    def _pace(self, size: int, messages: int) -> None:
        """Say when to read again after so many bytes, and go on gathering unless that gained nothing."""
        self._free_s = self._loop.time() + (self._gather_s if size < _FULL_BYTES else 0)
        if self._again is None:
            return
        self._again.cancel()
        if size and messages != 1:
            return self._look_later()
        self._again = None
        self._loop.add_reader(self._fd, self._on_readable)

    def _look_later(self) -> None:
        """Read by a timer, for a wake-up at each frame costs several times as much as the frame."""
        self._loop.remove_reader(self._fd)
        self._again = self._loop.call_at(self._free_s, self._on_readable)

    def _put(self, batch: Batch) -> None:
        self._outbox.put(payloads(batch), self._loop.time())
        if not self._waiting and self._timer is None:
            self._flush()

    def purge(self, reason: str) -> list[bytes]:
        """Drop the waiting messages and return them. Bytes in the driver are still sent."""
        return self._outbox.purge(reason)

    def _flush(self) -> None:
        self._timer = None
        self._outbox.expire(self._loop.time())
        while True:
            ahead_bytes, now = self._port.waiting(), self._loop.time()
            if ahead_bytes >= self._ahead_bytes:
                return self._pause()
            chunk = self._outbox.head(self._ahead_bytes - ahead_bytes, now, ahead_bytes, self._byte_s)
            if not chunk:
                return self._idle()
            try:
                count = self._write_out(chunk)
            except OSError as error:
                return self._lose(error)
            self._written(count)
            if count < len(chunk):
                self._outbox.give_back()
                self._wait(self._flush)
                return self._tend_later()
            if not self._outbox:
                return self._idle()

    def _idle(self) -> None:
        """Stop waiting for room: no message may go now. Arm a timer if the rate limit holds one back."""
        self._rest()
        if self._outbox:
            self._timer = self._loop.call_at(self._outbox.ready_s(), self._flush)

    def _written(self, count: int) -> None:
        sent = self._outbox.settle(count)
        if self._echoes is not None and sent:
            on_line = max(self._port.waiting(), count)
            expires = self._loop.time() + on_line * self._byte_s + ECHO_S
            for message in sent:
                self._echoes.sent(message, expires)

    def _pause(self) -> None:
        """Continue when half of what the driver may hold is sent. (Some drivers count in whole buffers.)"""
        self._rest()
        half_s = self._ahead_bytes / 2 * self._byte_s
        self._timer = self._loop.call_later(max(_PAUSE_MIN_S, half_s), self._flush)

    def _tend_later(self) -> None:
        if self._age_s is not None and self._tending is None and self._outbox:
            self._tending = self._loop.call_later(self._age_s, self._tend)

    def _tend(self) -> None:
        """Drop and count expired messages while the line is blocked and nothing is taken from the queue."""
        self._tending = None
        if self._waiting:
            self._outbox.expire(self._loop.time())
            self._tend_later()

    def _end(self, why: str) -> None:
        cancel(self._tending)
        cancel(self._again)
        super()._end(why)
