"""The common part of links over a serial port: its settings, opening it, reading it and letting go of it."""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Mapping
from typing import Any

from bridges.media.device import DeviceLink, OpenPipe, Place, cancel, need
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
    """Opens a serial port with its settings, and makes the queues of its pipes.

    `transceiver`: settings for a driver that switches an RS-485 transceiver (pyserial's RS485Settings by
    name; `{}` for its defaults); most adapters do it in hardware.
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
        if transceiver is not None and scheme_of(options.port) in SERVERS:
            raise LinkError(f"{name}: rs485 is for a device of this machine: set it at the serial server")
        self.options, self._transceiver = options, transceiver
        self.echoes = EchoCanceller() if options.echo else None

    @property
    def echoes_lost(self) -> int:
        """Number of messages that were sent and not heard back whole, with the option `echo`."""
        return 0 if self.echoes is None else self.echoes.lost

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start opening the port. Raises `LinkError` where pyserial is missing."""
        need(self.name, "serial", "pyserial", "uart")
        super().open(hub, loop)

    def _open_device(self) -> Port:
        return open_port(self.options, self._transceiver)

    def _release(self, device: Port) -> None:
        device.close()


class SerialPipe(OpenPipe):
    """Reads the port, waits for room in its driver, lets go of it. `_hear` and `_put` are the protocol's."""

    def __init__(self, link: SerialLink, port: Port, place: Place) -> None:
        super().__init__(place)
        self._port, self._fd = port, port.fileno()
        self._outbox = Outbox(link.stats, link.shed)
        self._timer: TimerHandle | None = None
        self._waiting = False

    def start(self) -> None:
        self._loop.add_reader(self._fd, self._on_readable)
        self._hub.attach(self)

    def _hear(self, data: bytes) -> list[bytes]:
        """Return the messages that `data`, possibly empty, completes. Never raises."""
        raise NotImplementedError

    def _on_readable(self) -> None:
        try:
            data = self._port.read()
        except OSError as error:
            return self._gone(lost(error))
        messages = self._hear(data)
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
    """Return the error as the fault of a link that lost its device."""
    return f"lost: {words_of(error)}"
