"""A serial line whose devices speak a protocol of their own."""

from asyncio import AbstractEventLoop
from typing import Any, ClassVar

from bridges.media.byte_stream import BytePort
from bridges.media.device import need, preload
from bridges.media.shedding import Shed
from bridges.media.spoken import SpokenLink
from bridges.media.uart.medium import Uart
from bridges.media.uart.port import open_port
from bridges.protocols.protocol import Protocol
from bus.hub import Hub


class UartSpoken(SpokenLink):
    """A serial port as a link, with a protocol. `rest` is that of `SpokenLink`."""

    doubts: ClassVar = "another baud rate"

    def __init__(self, options: Uart, protocol: Protocol, shed: Shed | None = None, **rest: Any) -> None:
        self.options = options
        rest |= {"byte_s": options.byte_s, "has_echo": options.echo}
        super().__init__(f"uart:{options.port}", protocol, shed, options.queue_bytes, **rest)
        preload("serial")

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start opening the port. Raises `LinkError` if pyserial is not installed."""
        need(self.name, "serial", "pyserial", "uart")
        super().open(hub, loop)

    def _open_port(self) -> BytePort:
        return open_port(self.options, None, self.late_s)
