"""The common part of links over a serial port: opening, reading and releasing it."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from typing import Any

from bridges.media.byte_stream import ByteStreamPipe
from bridges.media.device import DeviceLink, PipeContext, cancel, need, preload
from bridges.media.likeness import likeness
from bridges.media.shedding import Shed
from bridges.media.uart.address import SERVERS, scheme_of
from bridges.media.uart.codec import WIRE_BYTES_MAX, Decoder
from bridges.media.uart.echo import EchoCanceller
from bridges.media.uart.medium import Uart
from bridges.media.uart.outbox import Outbox
from bridges.media.uart.port import Port, open_port
from bus.errors import LinkError
from bus.hub import Hub
from bus.noise import Ear
from bus.wire.batch import from_payloads


class SerialLink(DeviceLink[Port]):
    """A link that opens a serial port with its settings.

    `transceiver`: settings for a driver that switches an RS-485 transceiver, by their names in pyserial's
    RS485Settings; `{}` for the defaults. Most adapters switch it in hardware and need none.
    """

    def __init__(
        self,
        name: str,
        options: Uart,
        shed: Shed | None = None,
        transceiver: Mapping[str, Any] | None = None,
        **retry: Any,
    ) -> None:
        self.options = options
        super().__init__(name, shed, options.queue_bytes, **retry)
        preload("serial")
        if transceiver is not None and scheme_of(options.port) in SERVERS:
            raise LinkError(f"{name}: rs485 is for a device of this machine: set it at the serial server")
        self._transceiver = transceiver
        self.echoes = EchoCanceller() if options.echo else None

    @property
    def ear(self) -> Ear:
        longest_s = WIRE_BYTES_MAX * self.options.byte_s
        return Ear(most=WIRE_BYTES_MAX, slow_s=max(Ear.slow_s, 2 * longest_s), likeness=likeness)

    @property
    def echoes_lost(self) -> int:
        """The number of messages that were sent but not heard back undamaged, with the option `echo`."""
        return 0 if self.echoes is None else self.echoes.lost

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start opening the port. Raises `LinkError` if pyserial is not installed."""
        need(self.name, "serial", "pyserial", "uart")
        super().open(hub, loop)

    def _open_device(self) -> Port:
        return open_port(self.options, self._transceiver)

    def _release(self, device: Port) -> None:
        device.close()


class SerialPipe(ByteStreamPipe):
    """The common part of pipes over a serial port. A protocol adds `_hear` and `_put`."""

    def __init__(self, link: SerialLink, port: Port, context: PipeContext, decoder: Decoder) -> None:
        super().__init__(port, context)
        self._decoder = decoder
        self._is_well = False  # the last read brought messages and nothing else
        self._seals = link.seals
        self._outbox = Outbox(link.stats, link.shed, None if self._seals is None else self._seals.seal)
        self._timer: TimerHandle | None = None
        self._waiting = False

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy for all messages that have not begun."""
        self._outbox.revise(shed)
        return True

    def _hear(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes; `data` may be empty. Never raises."""
        raise NotImplementedError

    def _came(self, data: bytes) -> None:
        if data and self._wire.hears:
            self._wire.tell((data,))
        messages = self._hear(data)
        self._note(data)
        if self._seals is not None:
            messages = self._seals.opened(messages)
        if messages:
            self._hub.publish(from_payloads(messages), self)

    def _note(self, data: bytes) -> None:
        """Count what is no message, and keep what may be the words of a server that is about to hang up."""
        found, noise_bytes = self._decoder.take_counts()
        was_well, self._is_well = self._is_well, found > 0 and not noise_bytes
        if was_well and self._is_well:
            return  # the watch over what comes knows
        self.stats.noise_bytes += noise_bytes
        self._keep(data, found)
        self._heard(len(data), found, noise_bytes, self._said)

    def _write_out(self, data: bytes) -> int:
        """Write to the port. Return how many bytes it took. Raises its `OSError`."""
        count = self._port.write(data)
        if count and self._wire.hears:
            self._wire.tell((data[:count],), True)
        return count

    def _wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when the driver has room."""
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, go_on)

    def _rest(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)

    def _end(self, why: str) -> None:
        cancel(self._timer)
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._outbox.purge("closed")
        self._decoder.end()
        self.stats.noise_bytes += self._decoder.take_counts()[1]
        self._port.close()
