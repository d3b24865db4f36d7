"""The common part of links over a serial port: opening, reading and releasing it."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from typing import Any

from bridges.media.device import DeviceLink, OpenPipe, PipeContext, cancel, need, preload
from bridges.media.shedding import Shed
from bridges.media.uart.address import SERVERS, scheme_of
from bridges.media.uart.echo import EchoCanceller
from bridges.media.uart.medium import Uart
from bridges.media.uart.outbox import Outbox
from bridges.media.uart.port import Port, open_port
from bus.errors import LinkError, words_of
from bus.hub import Hub
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
        super().__init__(name, shed, options.queue_bytes, **retry)
        preload("serial")
        if transceiver is not None and scheme_of(options.port) in SERVERS:
            raise LinkError(f"{name}: rs485 is for a device of this machine: set it at the serial server")
        self.options, self._transceiver = options, transceiver
        self.echoes = EchoCanceller() if options.echo else None

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


class SerialPipe(OpenPipe):
    """The common part of pipes over a serial port. A protocol adds `_hear` and `_put`."""

    def __init__(self, link: SerialLink, port: Port, context: PipeContext) -> None:
        super().__init__(context)
        self._port, self._fd = port, port.fileno()
        self._seals = link.seals
        self._outbox = Outbox(link.stats, link.shed, None if self._seals is None else self._seals.seal)
        self._timer: TimerHandle | None = None
        self._waiting = False

    def start(self) -> None:
        self._loop.add_reader(self._fd, self._on_readable)
        self._hub.attach(self)

    def revise(self, shed: Shed) -> bool:
        """Use another shed policy for all messages that have not begun."""
        self._outbox.revise(shed)
        return True

    def _hear(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes; `data` may be empty. Never raises."""
        raise NotImplementedError

    def _on_readable(self) -> None:
        try:
            data = self._port.read()
        except OSError as error:
            return self._gone(lost(error))
        messages = self._hear(data)
        if self._seals is not None:
            messages = self._seals.opened(messages)
        if messages:
            self._hub.publish(from_payloads(messages), self)
        return None

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
        self._port.close()


def lost(error: OSError) -> str:
    """Return the text of a link's fault for an error that ended the use of its device."""
    return f"lost: {words_of(error)}"
